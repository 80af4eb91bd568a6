// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/placed_model.hpp"
#include "app/run_folder.hpp"
#include "app/training_loop.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace distzo2 {

/// Writes summary.json (design section 7) of a finished run; `models_problem` says why final/ or best/ is not there,
/// where one could not be written.
void write_summary(const RunFolder& folder, const Training& training, const PlacedModel& placed,
                   std::uint64_t theta_digest, const std::string& models_problem,
                   const std::optional<EvaluationResult>& initial, const std::optional<EvaluationResult>& final);

}  // namespace distzo2
