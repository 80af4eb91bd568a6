// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/placed_model.hpp"
#include "app/run_evaluations.hpp"
#include "app/run_folder.hpp"
#include "app/training_loop.hpp"
#include "parallel/rank_place.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// What of the deck's `expected` the final evaluation does not reach, in words; empty where it reaches all, or the deck
/// states nothing.
std::vector<std::string> missed_expectations(const ExpectedSection& expected,
                                             const std::optional<EvaluationResult>& final);

/// What the summary says of each rank.
struct RankSummary {
  std::uint64_t peak_host_bytes = 0, bytes_read = 0, bytes_written = 0, threads = 0;
  double exchange_s = 0.0, waiting_s = 0.0;  // of a step: medians of the last half
};
/// Of all ranks. By all of them.
std::vector<RankSummary> rank_summaries(Communicator& world, const Training& training, const PlacedModel& placed);

/// Writes summary.json (design section 7) of a finished run.
void write_summary(const RunFolder& folder, const Training& training, const PlacedModel& placed,
                   std::uint64_t theta_digest, const RunEvaluations& evaluations, const std::vector<RankSummary>& ranks,
                   const std::vector<RankPlace>& places);

}  // namespace distzo2
