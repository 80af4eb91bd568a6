// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/clock.hpp"
#include "core/linear.hpp"
#include "core/pack_weights.hpp"
#include "core/panels.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

// What every product with a perturbed matrix is made of: `linear` and the head differ only in what becomes of a panel's
// products.

/// Which of PanelScratch's threads a loop's body has.
using ThreadToken = Kokkos::Experimental::UniqueToken<HostExec>;

/// x in the compute precision: itself in fp32, else a copy rounded to it (bf16 words, or fp32 where there is no such
/// GEMM).
struct PanelInput {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0, evaluation_bytes = 0;
  std::int64_t lda = 0;
  const void* row(int e, int token) const { return data + e * evaluation_bytes + token * row_bytes; }
};

PanelInput compute_input(const HostExec& exec, const Rows& x, Compute compute, PanelScratch& scratch);

/// A panel of one of the matrices, rows [row, row + n) of W, under one evaluation.
struct Panel {
  const Product* product;
  int row, n, evaluation;
};

/// The panels of all products, one after another, with the GEMMs of whole panels and of each product's last one.
class PanelList {
public:
  PanelList(std::span<const Product> products, Compute compute, std::int64_t lda);
  int count() const { return count_; }
  int rows() const { return rows_; }
  const GemmShape& whole() const { return whole_; }
  Panel operator[](int i) const;
  Gemm& gemm(const Panel& panel) const {
    return panel.n == rows_ ? *whole_gemm_ : *last_gemm_[static_cast<std::size_t>(panel.product - products_.data())];
  }

private:
  static constexpr std::size_t most_products = 3;
  std::span<const Product> products_;
  int rows_, count_ = 0;
  GemmShape whole_;
  Gemm* whole_gemm_ = nullptr;
  std::array<Gemm*, most_products> last_gemm_{};
};

/// Calls use(panel, multiply) for every panel of every product and every evaluation; multiply(k) is the product of tile
/// k of x with the panel, (row_tile, panel.n). theta is read and updated once a panel, z made once a direction, and a
/// panel packed once for all tiles.
template <class Use>
void for_each_panel(const HostExec& exec, const char* label, std::span<const Product> products, const Rows& x,
                    const Perturbation& p, Compute compute, PanelScratch& scratch, const Use& use) {
  const PanelInput input = compute_input(exec, x, compute, scratch);
  const PanelList panels(products, compute, input.lda);
  const std::int64_t cols = products.front().w.cols;
  const std::vector<DirectionGroup>& groups = scratch.groups(p);
  std::size_t largest = 1;
  for (const DirectionGroup& g : groups) largest = std::max(largest, g.evaluations.size());
  scratch.prepare(panels.rows() * cols, largest);
  scratch.prepare_gemm(packed_floats(panels.whole()), static_cast<std::size_t>(row_tile * panels.rows()));
  using Policy = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<int>>;
  const ThreadToken token(exec);
  static const std::string name(label);  // one a type of `use`
  Kokkos::parallel_for(name, Policy(exec, 0, panels.count()).set_chunk_size(1), [&](int i) {
    const int thread = token.acquire();
    ThreadPanels& t = scratch.thread(thread);
    Panel panel = panels[i];
    const Weight& w = panel.product->w;
    Gemm& gemm = panels.gemm(panel);
    GemmShape shape = panels.whole();
    shape.n = panel.n;
    const std::int64_t offset = panel.row * cols, size = panel.n * cols;
    auto start = Clock::now();
    const float* theta = bring_up_to_date(w, offset, size, t);
    for (const DirectionGroup& group : groups) {
      make_panels(w, offset, size, theta, p, group, compute, t);
      for (std::size_t j = 0; j < group.evaluations.size(); ++j) {
        panel.evaluation = group.evaluations[j];
        pack_weights(shape, t.packed.data(), panel_of(theta, group, j, compute, t));
        t.z_s += seconds_since(start);
        start = Clock::now();
        use(panel, [&](int k) -> const float* {
          const auto product_start = scratch.time_products ? Clock::now() : Clock::time_point();
          gemm.run(thread, t.tile.data(), input.row(panel.evaluation, k * row_tile), t.packed.data());
          if (scratch.time_products) t.product_s += seconds_since(product_start);
          return t.tile.data();
        });
        t.gemm_s += seconds_since(start);
        start = Clock::now();
      }
    }
    token.release(thread);
  });
  throw_if_a_gemm_failed();
  for (const Product& product : products)
    scratch.gemm_flop +=
        2.0 * static_cast<double>(x.tokens) * x.evaluations * static_cast<double>(product.w.rows * cols);
}

}  // namespace distzo2
