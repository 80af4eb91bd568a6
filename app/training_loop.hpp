// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/checkpointing.hpp"
#include "app/lane_log.hpp"
#include "app/loading.hpp"
#include "app/progress.hpp"
#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "app/stop_request.hpp"
#include "app/time_left.hpp"
#include "core/engine.hpp"
#include "core/layout.hpp"
#include "core/trajectory_record.hpp"
#include "parallel/exchange.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// Everything the loop works on.
struct Training {
  const RunConfig& config;
  const LoadedData& data;
  Engine& engine;
  Communicator& world;
  Layout layout;
  /// Called with each record before it becomes pending: it is on disk then, as far as the system goes.
  std::function<void(const StepRecord&)> keep_record;
  MetricsFile& metrics;
  Progress& progress;
  const StopSignals& signals;
  std::vector<StepRecord> records;  // of the steps done: grows
  /// Called with theta_t as it is before record t is appended. A reason where a stop request ended an evaluation: then
  /// the loop stops without that record, and the evaluation is made on resume.
  std::function<std::optional<StopReason>(std::uint32_t t)> evaluation_point;
  /// Called with theta after so many steps, as it is.
  std::function<void(std::uint32_t steps)> consistency_point;
  Checkpointing& checkpoints;
  LaneLog& lanes;
  TimeLeft& time_left;
  std::vector<ExchangeCost> exchanges = {};  // of the steps done by this process, on several ranks: grows
};

/// What of a step is not finite, in words: a loss, or only the update's factor, where finite losses differ so much that
/// g or c overflows.
std::string non_finite_part(const StepRecord& record);

/// Steps from training.records.size() to the deck's last: the algorithm of design section 1. Throws Error (diverged)
/// where the deck says to stop on a non-finite loss, or the loss diverged.
StopReason train(Training& training);

}  // namespace distzo2
