// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/workspace.hpp"

#include <span>

namespace distzo2 {

/// gate = silu(gate) * up, both (evaluations, tokens, features). silu within 3 ulp (kernels/lanes.hpp).
void silu_multiply(const HostExec& exec, const Rows& gate, const Rows& up);

/// x = max(x, 0); NaN stays NaN.
void relu(const HostExec& exec, const Rows& x);

/// out(e, i) = x(e, tokens[i]), out (evaluations, tokens.size(), features).
void gather_rows(const HostExec& exec, const Rows& out, const Rows& x, std::span<const int> tokens);

}  // namespace distzo2
