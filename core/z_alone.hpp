// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/model_config.hpp"
#include "core/perturbation.hpp"

namespace distzo2 {

/// Seconds that making z takes in a step, mean over threads (bench step).
struct ZAlone {
  double passes_s = 0;   // of the matrices that are multiplied: for the evaluations, and for the update before them
  double lookups_s = 0;  // of the tables whose rows are only looked up: for the update
};

/// z as often as a step of these evaluations makes it for matrices, and nothing else: the same index ranges, in the
/// same chunks, on the same threads. In a step z is made, used and gone within microseconds, so it is not timed there.
ZAlone z_alone(const ModelConfig& config, const Perturbation& p);

}  // namespace distzo2
