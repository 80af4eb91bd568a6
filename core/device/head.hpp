// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/space.hpp"
#include "core/workspace.hpp"

#include <cmath>
#include <cstdint>

namespace distzo2 {

/// What the head knows of a pass, in the memory that computes. The terms of row r are term_of_row[terms_begin[r],
/// terms_begin[r + 1]).
struct HeadState {
  double *largest = nullptr, *sum = nullptr;            // (evaluations, rows): a row's softmax so far
  double *target_logit = nullptr, *log_prob = nullptr;  // (evaluations, terms)
  const std::int32_t *terms_begin = nullptr, *term_of_row = nullptr;
  const std::int32_t *target = nullptr, *row_of_term = nullptr;  // of a term
  int evaluations = 0, rows = 0, terms = 0;
};

/// No row has seen a logit.
template <class Space>
void start_softmax(const typename Space::Exec& exec, const HeadState& head) {
  const std::int64_t rows = static_cast<std::int64_t>(head.evaluations) * head.rows;
  Kokkos::parallel_for(
      "distzo2::device::start_softmax",
      Kokkos::RangePolicy<typename Space::Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, rows),
      KOKKOS_LAMBDA(const std::int64_t i) {
        head.largest[i] = -INFINITY;
        head.sum[i] = 0.0;
      });
}

/// Adds logits (rows, columns) of rows [first_row, first_row + rows) of one evaluation and entries [first_column,
/// first_column + columns) of the vocabulary: largest logit and sum of exponentials run on, and targets among the
/// columns are picked up. Exponentials in fp32, their sum in double.
template <class Space>
void add_logits(const typename Space::Exec& exec, const HeadState& head, const float* logits, int evaluation,
                int first_row, int rows, std::int64_t first_column, int columns) {
  using Policy = Kokkos::TeamPolicy<typename Space::Exec>;
  Kokkos::parallel_for(
      "distzo2::device::add_logits", Policy(exec, rows, Space::team_threads),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        const int row = first_row + team.league_rank();
        const float* const x = logits + static_cast<std::int64_t>(team.league_rank()) * columns;
        float most = -INFINITY;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, columns),
            [&](const int i, float& part) {
              if (x[i] > part) part = x[i];
            },
            Kokkos::Max<float>(most));
        double sum = 0.0;
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, columns),
            [&](const int i, double& part) { part += static_cast<double>(expf(x[i] - most)); }, sum);
        Kokkos::single(Kokkos::PerTeam(team), [&]() {
          const std::int64_t at = static_cast<std::int64_t>(evaluation) * head.rows + row;
          const double before = head.largest[at], here = static_cast<double>(most);
          const double now = here > before ? here : before;
          head.sum[at] = head.sum[at] * ::exp(before - now) + sum * ::exp(here - now);
          head.largest[at] = now;
          for (int j = head.terms_begin[row]; j < head.terms_begin[row + 1]; ++j) {
            const int term = head.term_of_row[j];
            const std::int64_t column = head.target[term] - first_column;
            if (column >= 0 && column < columns)
              head.target_logit[static_cast<std::int64_t>(evaluation) * head.terms + term] =
                  static_cast<double>(x[column]);
          }
        });
      });
}

/// log_prob = target's logit - log of the sum of all exponentials.
template <class Space>
void finish_softmax(const typename Space::Exec& exec, const HeadState& head) {
  const std::int64_t terms = static_cast<std::int64_t>(head.evaluations) * head.terms;
  Kokkos::parallel_for(
      "distzo2::device::finish_softmax",
      Kokkos::RangePolicy<typename Space::Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, terms),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t row = i / head.terms * head.rows + head.row_of_term[i % head.terms];
        head.log_prob[i] = head.target_logit[i] - head.largest[row] - ::log(head.sum[row]);
      });
}

}  // namespace distzo2
