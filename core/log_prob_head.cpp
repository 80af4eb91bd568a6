// SPDX-License-Identifier: BSD-3-Clause
#include "core/log_prob_head.hpp"

#include "core/kernels/lanes.hpp"
#include "core/panel_loop.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>

namespace distzo2 {
namespace {

using Partial = SoftmaxPartial;

/// In an order that n alone fixes; the sum in double.
Partial panel_softmax(const float* logits, int n) {
  const Lanes nothing = broadcast(-std::numeric_limits<float>::infinity());
  const int whole = n / lane_count * lane_count;
  Lanes rest = nothing;  // exp of it is 0
  std::memcpy(&rest, logits + whole, static_cast<std::size_t>(n - whole) * sizeof(float));
  Lanes top = rest;
  for (int i = 0; i < whole; i += lane_count) top = larger(load(logits + i), top);
  const Lanes most = broadcast(largest(top));
  DoubleLanes sums[2] = {};
  const auto add = [&](Lanes x) {
    const Lanes y = exp(x - most);
    sums[0] += low_half(y);
    sums[1] += high_half(y);
  };
  for (int i = 0; i < whole; i += lane_count) add(load(logits + i));
  if (whole < n) add(rest);
  const DoubleLanes s = sums[0] + sums[1];
  return {static_cast<double>(most[0]), (s[0] + s[2]) + (s[1] + s[3])};
}

/// Panels that leave their partials before these are merged.
int panels_a_round(std::int64_t rows) {
  constexpr std::int64_t most_partials = std::int64_t{1} << 20, fewest_panels = 64;
  return static_cast<int>(std::max(most_partials / std::max<std::int64_t>(rows, 1), fewest_panels));
}

}  // namespace

LogProbHead::LogProbHead(const HostExec& exec, const Rows& x, std::span<const HeadTerm> terms, const Perturbation& p,
                         Compute compute, PanelScratch& scratch)
    : exec_(exec), x_(x), terms_(terms), p_(p), compute_(compute), scratch_(scratch) {
  const auto rows = static_cast<std::size_t>(x.evaluations) * static_cast<std::size_t>(x.tokens);
  scratch.softmax.assign(rows, {});
  scratch.target_logit.resize(static_cast<std::size_t>(x.evaluations) * terms.size());
  // Terms by target: a panel picks up the logits of the few that lie in it.
  scratch.by_target.resize(terms.size());
  std::iota(scratch.by_target.begin(), scratch.by_target.end(), 0);
  std::ranges::sort(scratch.by_target, {}, [&](int i) { return terms[static_cast<std::size_t>(i)].target; });
}

std::int64_t log_prob_partials(std::int64_t rows, std::int64_t head_rows, std::int64_t cols) {
  return rows * std::min(panels_a_round(rows), pieces_of(static_cast<int>(head_rows), panel_rows(cols)));
}

void LogProbHead::add(const Weight& w, std::int64_t first_row) {
  // In rounds: each panel leaves a partial a row, merged in panel order whichever thread had which panel.
  const int height = panel_rows(w.cols);
  const int round = panels_a_round(static_cast<std::int64_t>(x_.evaluations) * x_.tokens);
  const int panels = pieces_of(static_cast<int>(w.rows), height);
  for (int begin = 0; begin < panels; begin += round) {
    const int end = std::min(begin + round, panels);
    const std::int64_t row = std::int64_t{begin} * height;
    add_panels(rows_of(w, row, std::min<std::int64_t>(std::int64_t{end} * height, w.rows)), first_row + row,
               end - begin);
  }
}

void LogProbHead::add_panels(const Weight& w, std::int64_t first_row, int panels) {
  const std::int64_t rows = static_cast<std::int64_t>(x_.evaluations) * x_.tokens;
  const auto term_count = static_cast<std::int64_t>(terms_.size());
  const auto wanted = static_cast<std::size_t>(rows * panels);
  if (scratch_.partials.size() < wanted) scratch_.partials.resize(wanted);
  Partial* const partial = scratch_.partials.data();
  double* const target_logit = scratch_.target_logit.data();
  const ScratchVector<int>& by_target = scratch_.by_target;
  const auto target_of = [&](int i) { return terms_[static_cast<std::size_t>(i)].target; };
  const Rows& x = x_;

  const Product product{{}, w};
  for_each_panel(exec_, "distzo2::log_prob_head", {&product, 1}, x, p_, compute_, scratch_,
                 [&](const Panel& panel, const auto& multiply) {
                   const std::int64_t e = panel.evaluation;
                   const int index = panel.row / panel_rows(w.cols);
                   const std::int64_t target_begin = first_row + panel.row;
                   const auto first = std::ranges::lower_bound(by_target, target_begin, {}, target_of);
                   for (int begin = 0; begin < x.tokens; begin += row_tile) {
                     const float* logits = multiply(begin / row_tile);
                     const int end = std::min(begin + row_tile, x.tokens);
                     for (int row = begin; row < end; ++row)
                       partial[(e * x.tokens + row) * panels + index] =
                           panel_softmax(logits + (row - begin) * panel.n, panel.n);
                     for (auto i = first; i != by_target.end() && target_of(*i) < target_begin + panel.n; ++i) {
                       const HeadTerm& term = terms_[static_cast<std::size_t>(*i)];
                       if (term.row >= begin && term.row < end)
                         target_logit[e * term_count + *i] =
                             static_cast<double>(logits[(term.row - begin) * panel.n + term.target - target_begin]);
                     }
                   }
                 });

  Partial* const softmax = scratch_.softmax.data();
  static const std::string name("distzo2::log_prob_head::merge");  // a literal would become a string at every call
  Kokkos::parallel_for(
      name, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<std::int64_t>>(exec_, 0, rows), [=](std::int64_t i) {
        Partial all = softmax[i];
        for (int j = 0; j < panels; ++j) {
          const Partial& next = partial[i * panels + j];
          const double largest = std::max(all.largest, next.largest);
          all.sum = all.sum * std::exp(all.largest - largest) + next.sum * std::exp(next.largest - largest);
          all.largest = largest;
        }
        softmax[i] = all;
      });
}

void LogProbHead::finish(double* log_prob) {
  const auto term_count = static_cast<std::int64_t>(terms_.size());
  for (std::int64_t e = 0; e < x_.evaluations; ++e)
    for (std::int64_t i = 0; i < term_count; ++i) {
      const auto row = static_cast<std::size_t>(e * x_.tokens + terms_[static_cast<std::size_t>(i)].row);
      const Partial& of_row = scratch_.softmax[row];
      log_prob[e * term_count + i] =
          scratch_.target_logit[static_cast<std::size_t>(e * term_count + i)] - of_row.largest - std::log(of_row.sum);
    }
}

}  // namespace distzo2
