// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/engine.hpp"
#include "core/lane_trace.hpp"
#include "io/trace_file.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace distzo2 {

/// The use of the lanes in each step of a run of any length, in fixed memory: where steps are many, several in a row
/// are kept as one.
class StepUses {
public:
  StepUses();
  void add(const Utilisation& step);
  /// Of the last half of the steps, or up to a 512th of them more; none before the first step.
  std::optional<Utilisation> last_half() const;

private:
  std::vector<Utilisation> uses_;  // of `steps_each_` steps each
  std::uint64_t steps_each_ = 1, steps_ = 0;
  Utilisation open_;  // of the steps since, fewer than that
};

/// What the lanes of a streamed model did: the timeline on request (`output/trace file`), and their use for the
/// summary.
class LaneLog {
public:
  LaneLog(const RunConfig& config, Engine& engine);
  void after_step();
  /// A step is interrupted by what is no part of it; from its end on it is timed again.
  void interrupt_step();
  /// What was done since the last of these calls is of no step: a pass of an evaluation. The timeline shows it.
  void leave_out();
  void close();
  /// Of the last half of the steps that this process did; none where nothing streams.
  std::optional<Utilisation> last_half() const { return steps_.last_half(); }

private:
  Utilisation take();

  UnitPipeline* pipeline_;  // null where nothing streams
  std::optional<TraceFile> trace_;
  std::vector<LaneSpan> spans_;  // kept for its memory
  double since_ = 0;             // on the clock of the spans
  Utilisation step_;             // that is under way, as far as it was interrupted
  StepUses steps_;
};

/// Bytes a second of the disk while it was busy, reading or writing.
double disk_rate(const Utilisation& use);

/// Seconds and bytes of each lane, bytes a second while it was busy, and their overlap; null for none.
nlohmann::ordered_json lanes_object(const std::optional<Utilisation>& use);

}  // namespace distzo2
