// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"
#include "app/training_loop.hpp"

#include <cstdint>
#include <optional>

namespace distzo2 {

/// Writes summary.json (design section 7) of a finished run.
void write_summary(const RunFolder& folder, const Training& training, const TrainingEnd& end,
                   std::uint64_t theta_digest, const std::optional<EvaluationResult>& initial,
                   const std::optional<EvaluationResult>& final);

}  // namespace distzo2
