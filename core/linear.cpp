// SPDX-License-Identifier: BSD-3-Clause
#include "core/linear.hpp"

#include "core/panel_loop.hpp"
#include "core/panels.hpp"
#include "core/simd/kernels.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {

Weight rows_of(const Weight& w, std::int64_t begin, std::int64_t end) {
  Weight rows = w;
  rows.data += static_cast<std::size_t>(begin * w.cols) * bytes_of(w.storage);
  rows.first += static_cast<std::uint64_t>(begin * w.cols);
  rows.rows = end - begin;
  return rows;
}

void linear(const HostExec& exec, std::initializer_list<Product> products, const Rows& x, const Perturbation& p,
            Compute compute, PanelScratch& scratch) {
  for_each_panel(exec, "distzo2::linear", {products.begin(), products.size()}, x, p, compute, scratch,
                 [&](const Panel& panel, const auto& multiply) {
                   const Product& product = *panel.product;
                   const int e = panel.evaluation, n = panel.n;
                   const float* bias =
                       product.bias == nullptr ? nullptr : product.bias + e * product.w.rows + panel.row;
                   for (int token = 0; token < x.tokens; token += row_tile) {
                     const float* in = multiply(token / row_tile);
                     const int valid = std::min(row_tile, x.tokens - token);
                     for (int r = 0; r < valid; ++r, in += n) {
                       float* out = product.y.row(e, token + r) + panel.row;
                       const auto put = [&](auto value) {
                         if (product.add)
                           for (int c = 0; c < n; ++c) out[c] += value(c);
                         else
                           for (int c = 0; c < n; ++c) out[c] = value(c);
                       };
                       if (bias == nullptr)
                         put([&](int c) { return in[c]; });
                       else
                         put([&](int c) { return in[c] + bias[c]; });
                     }
                   }
                 });
}

namespace {

/// Calls put(e, i, values, n) with fma(scale_e, z, theta) of elements [offset + i, offset + i + n) of w, for every
/// evaluation e and chunk of [offset, offset + size): pending records replayed, nothing written.
template <class Put>
void for_each_perturbed_chunk(const Weight& w, std::int64_t offset, std::int64_t size, const Perturbation& p,
                              const std::vector<DirectionGroup>& groups, ThreadPanels& t, const Put& put) {
  read_up_to_date(w, offset, size, t.theta.data(), t.scratch.data());
  for (const DirectionGroup& group : groups)
    for (std::int64_t i = 0; i < size; i += chunk_elements) {
      const std::int64_t n = std::min(chunk_elements, size - i);
      const float* theta = t.theta.data() + i;
      if (group.direction == 0) {
        for (const int e : group.evaluations) put(e, i, theta, n);
        continue;
      }
      fill_z(t.z.data(), p, group.direction, w.first + static_cast<std::uint64_t>(offset + i), n);
      for (const int e : group.evaluations) {
        simd_kernels().perturb(t.scratch.data(), theta, t.z.data(), p.evaluations[static_cast<std::size_t>(e)].scale,
                               static_cast<std::size_t>(n));
        put(e, i, t.scratch.data(), n);
      }
    }
}

}  // namespace

void lookup_rows(const HostExec& exec, const Rows& out, std::span<const std::int32_t> ids, const Weight& w,
                 const Perturbation& p, bool add, PanelScratch& scratch) {
  const std::vector<DirectionGroup>& groups = scratch.groups(p);
  scratch.prepare(w.cols, 1);
  const ThreadToken token(exec);
  const auto tokens = static_cast<int>(ids.size());
  static const std::string name("distzo2::lookup_rows");  // a literal would become a string at every call
  Kokkos::parallel_for(name, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, tokens), [&](int row) {
    const int thread = token.acquire();
    const std::int32_t id = ids[static_cast<std::size_t>(row)];
    Weight looked_up = w.gathered ? rows_of(w, row, row + 1) : rows_of(w, id, id + 1);
    looked_up.first = w.first + static_cast<std::uint64_t>(id * w.cols);
    for_each_perturbed_chunk(looked_up, 0, w.cols, p, groups, scratch.thread(thread),
                             [&](int e, std::int64_t i, const float* values, std::int64_t n) {
                               float* to = out.row(e, row) + i;
                               for (std::int64_t c = 0; c < n; ++c) to[c] = add ? to[c] + values[c] : values[c];
                             });
    token.release(thread);
  });
}

void perturbed_vector(float* out, const Weight& w, const Perturbation& p, PanelScratch& scratch) {
  const std::int64_t size = w.rows * w.cols;
  scratch.prepare(size, 1);
  for_each_perturbed_chunk(
      w, 0, size, p, scratch.groups(p), scratch.thread(0),
      [&](int e, std::int64_t i, const float* values, std::int64_t n) { std::copy_n(values, n, out + e * size + i); });
}

}  // namespace distzo2
