// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/model_config.hpp"
#include "core/precision.hpp"

namespace distzo2 {

/// Floating-point operations a second of the GEMM calls that `linear` makes for one decoder block, on all threads and
/// with nothing between them: the roof that a step's own rate is held against. `rows` are tokens times evaluations.
double gemm_rate_alone(const ModelConfig& config, Compute compute, int rows);

}  // namespace distzo2
