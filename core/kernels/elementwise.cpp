// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/elementwise.hpp"

#include "core/kernels/lanes.hpp"
#include "core/kernels/row_loop.hpp"

#include <algorithm>

namespace distzo2 {

void silu_multiply(const HostExec& exec, const Rows& gate, const Rows& up) {
  for_each_row(exec, "distzo2::silu_multiply", gate, [=](int e, int token) {
    float* const g = gate.row(e, token);
    float const* const u = up.row(e, token);
    int i = 0;
    for (; i + lane_count <= gate.features; i += lane_count) store(g + i, silu(load(g + i)) * load(u + i));
    int const rest = gate.features - i;
    if (rest > 0) store_first(g + i, silu(load_first(g + i, rest)) * load_first(u + i, rest), rest);
  });
}

void relu(const HostExec& exec, const Rows& x) {
  for_each_row(exec, "distzo2::relu", x, [=](int e, int token) {
    float* const row = x.row(e, token);
    for (int i = 0; i < x.features; ++i) row[i] = row[i] < 0.0F ? 0.0F : row[i];
  });
}

void gather_rows(const HostExec& exec, const Rows& out, const Rows& x, std::span<const int> tokens) {
  const auto* const all = tokens.data();
  for_each_row(exec, "distzo2::gather_rows", out,
               [=](int e, int i) { std::copy_n(x.row(e, all[i]), x.features, out.row(e, i)); });
}

}  // namespace distzo2
