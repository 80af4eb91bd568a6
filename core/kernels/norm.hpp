// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/workspace.hpp"

namespace distzo2 {

/// y = weight * x / sqrt(mean(x^2) + eps) over each run of `size` features (all of a row, or a head of it).
/// x, y (evaluations, tokens, n * size), y may be x; weight (evaluations, size). The sum of squares is fp32 in 16 fixed
/// partial sums.
void rms_norm(const HostExec& exec, const Rows& y, const Rows& x, const float* weight, int size, double eps);

/// y = weight * (x - mean) / sqrt(variance + eps) + bias over a row; weight, bias (evaluations, features), both null
/// for a norm without parameters. y may be x. Two passes, fp32 in 16 fixed partial sums.
void layer_norm(const HostExec& exec, const Rows& y, const Rows& x, const float* weight, const float* bias, double eps);

}  // namespace distzo2
