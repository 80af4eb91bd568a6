// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/parameter_store.hpp"
#include "core/perturbation.hpp"
#include "core/workspace.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>

namespace distzo2 {

class PanelScratch;  // per-thread W panels, z and staging; core/panels.hpp

/// One of the matrices that multiply the same x.
struct Product {
  Rows y;  // (evaluations, tokens, w.rows)
  Weight w;
  const float* bias = nullptr;  // (evaluations, w.rows), added; or null
  bool add = false;             // y += x W^T + bias, not y =
};

/// Rows [begin, end) of a matrix.
Weight rows_of(const Weight& w, std::int64_t begin, std::int64_t end);

/// For up to three matrices W of equal width at once, so that threads meet once for all: y[e] = x[e] * W[e]^T for every
/// evaluation e, W[e] = round_C(fma(scale_e, z(t, k_e), theta)): theta is read once, the pending update applied and
/// written back in the same pass, W made one row panel at a time and multiplied at once. x (evaluations, tokens,
/// w.cols), padded to whole row tiles; y and x must not overlap. The caller calls store.absorbed for the tensors
/// afterwards (the engine does).
void linear(const HostExec& exec, std::initializer_list<Product> products, const Rows& x, const Perturbation& p,
            Compute compute, PanelScratch& scratch);

/// out(e, j, :) = fma(scale_e, z, theta)(row ids[j], :) in fp32 whatever the compute precision; pending records are
/// replayed for the rows read and nothing is written; w may hold the rows gathered for `ids` alone. out (evaluations,
/// ids.size(), w.cols); adds to `out` if `add`.
void lookup_rows(const HostExec& exec, const Rows& out, std::span<const std::int32_t> ids, const Weight& w,
                 const Perturbation& p, bool add, PanelScratch& scratch);

/// A one-dimensional tensor for each evaluation: out (evaluations, size), fp32, pending records replayed.
void perturbed_vector(float* out, const Weight& w, const Perturbation& p, PanelScratch& scratch);

}  // namespace distzo2
