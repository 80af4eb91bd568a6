// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/placed_model.hpp"
#include "app/run_evaluations.hpp"
#include "app/run_folder.hpp"
#include "app/training_loop.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// What of the deck's `expected` the final evaluation does not reach, in words; empty where it reaches all, or the deck
/// states nothing.
std::vector<std::string> missed_expectations(const ExpectedSection& expected,
                                             const std::optional<EvaluationResult>& final);

/// Writes summary.json (design section 7) of a finished run.
void write_summary(const RunFolder& folder, const Training& training, const PlacedModel& placed,
                   std::uint64_t theta_digest, const RunEvaluations& evaluations);

}  // namespace distzo2
