// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/workspace.hpp"

#include <cstdint>
#include <string>

namespace distzo2 {

/// Calls f(evaluation, token) for every row of `shape`, threads over rows. One label a type of f.
template <class F>
void for_each_row(const HostExec& exec, const char* label, const Rows& shape, F f) {
  const int tokens = shape.tokens;
  using Policy = Kokkos::RangePolicy<HostExec, Kokkos::IndexType<std::int64_t>>;
  std::int64_t const rows = static_cast<std::int64_t>(shape.evaluations) * tokens;
  static const std::string name(label);  // Kokkos would make a string, and so allocate, at every call
  Kokkos::parallel_for(name, Policy(exec, 0, rows),
                       [=](std::int64_t const i) { f(static_cast<int>(i / tokens), static_cast<int>(i % tokens)); });
}

}  // namespace distzo2
