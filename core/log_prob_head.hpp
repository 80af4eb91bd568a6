// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/linear.hpp"
#include "core/parameter_store.hpp"
#include "core/perturbation.hpp"
#include "core/workspace.hpp"

#include <cstdint>
#include <span>

namespace distzo2 {

/// A loss term as the head sees it: log p of `target` in row `row` of x.
struct HeadTerm {
  int row = 0;
  std::int32_t target = 0;
};

/// log_prob(e, i) = log softmax(W[e] x(e, row_i))[target_i] of a head matrix W that comes in row ranges, in order and
/// without gaps: logits exist one panel at a time, once a row, however many terms read it; a row's largest logit and
/// sum of exponentials run on from panel to panel, so that the bits do not depend on the ranges. x (evaluations, rows,
/// cols).
class LogProbHead {
public:
  LogProbHead(const HostExec& exec, const Rows& x, std::span<const HeadTerm> terms, const Perturbation& p,
              Compute compute, PanelScratch& scratch);
  /// The next rows of W, the first of them row `first_row` of it.
  void add(const Weight& rows, std::int64_t first_row);
  /// log_prob (evaluations, terms), once all rows were added.
  void finish(double* log_prob);

private:
  void add_panels(const Weight& rows, std::int64_t first_row, int panels);

  const HostExec& exec_;
  const Rows& x_;
  std::span<const HeadTerm> terms_;
  const Perturbation& p_;
  Compute compute_;
  PanelScratch& scratch_;
};

/// Partials (one a row and panel) that LogProbHead keeps at a time for so many rows of all evaluations.
std::int64_t log_prob_partials(std::int64_t rows, std::int64_t head_rows, std::int64_t cols);

}  // namespace distzo2
