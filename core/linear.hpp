// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/parameter_store.hpp"
#include "core/perturbation.hpp"
#include "core/workspace.hpp"

#include <cstdint>
#include <span>

namespace distzo2 {

class PanelScratch;  // per-thread W panels, z and staging; core/panels.hpp

/// y[e] = x[e] * W[e]^T for every evaluation e, W[e] = round_C(fma(scale_e, z(t, k_e), theta)): theta is read once, the
/// pending update applied and written back in the same pass, W made one row panel at a time and multiplied at once.
/// y (evaluations, tokens, w.rows), x (evaluations, tokens, w.cols); `bias` (evaluations, w.rows) or null is added.
/// y and x must not overlap. The caller calls store.absorbed for the tensor afterwards (weights_of_stage does).
void linear(const HostExec& exec, const Rows& y, const Rows& x, const Weight& w, const float* bias,
            const Perturbation& p, Compute compute, PanelScratch& scratch);

/// log_prob(e, i) = log softmax(W[e] h_i)[target_i] with h_i = x(e, i): logits exist one panel at a time.
/// log_prob (evaluations, terms), x (evaluations, terms, w.cols).
void linear_log_prob(const HostExec& exec, double* log_prob, const Rows& x, std::span<const std::int32_t> targets,
                     const Weight& w, const Perturbation& p, Compute compute, PanelScratch& scratch);

/// out(e, j, :) = fma(scale_e, z, theta)(row ids[j], :) in fp32 whatever the compute precision; pending records are
/// replayed for the rows read and nothing is written. out (evaluations, ids.size(), w.cols); adds to `out` if `add`.
void lookup_rows(const HostExec& exec, const Rows& out, std::span<const std::int32_t> ids, const Weight& w,
                 const Perturbation& p, bool add, PanelScratch& scratch);

/// A one-dimensional tensor for each evaluation: out (evaluations, size), fp32, pending records replayed.
void perturbed_vector(float* out, const Weight& w, const Perturbation& p, PanelScratch& scratch);

}  // namespace distzo2
