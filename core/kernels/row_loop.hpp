// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/workspace.hpp"

#include <cstdint>

namespace distzo2 {

/// Calls f(evaluation, token) for every row of `shape`, threads over rows.
template <class F>
void for_each_row(const HostExec& exec, const char* label, const Rows& shape, F f) {
  const int tokens = shape.tokens;
  using Policy = Kokkos::RangePolicy<HostExec, Kokkos::IndexType<std::int64_t>>;
  std::int64_t const rows = static_cast<std::int64_t>(shape.evaluations) * tokens;
  Kokkos::parallel_for(label, Policy(exec, 0, rows),
                       [=](std::int64_t const i) { f(static_cast<int>(i / tokens), static_cast<int>(i % tokens)); });
}

}  // namespace distzo2
