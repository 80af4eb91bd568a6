// SPDX-License-Identifier: BSD-3-Clause
#include "core/linear.hpp"

#include "core/panels.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace distzo2 {
namespace {

using Token = Kokkos::Experimental::UniqueToken<HostExec>;
using PanelPolicy = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<int>>;

int tiles(int rows, int tile) {
  return (rows + tile - 1) / tile;
}

/// x in the compute precision: itself in fp32, else a copy rounded to bf16 (words, or fp32 where there is no bf16
/// GEMM).
struct Input {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0, evaluation_bytes = 0;
  std::int64_t lda = 0;
  const void* row(int e, int token) const { return data + e * evaluation_bytes + token * row_bytes; }
};

Input compute_input(const HostExec& exec, const Rows& x, int padded, Compute compute, PanelScratch& scratch) {
  if (compute == Compute::fp32)
    return {reinterpret_cast<const std::byte*>(x.data), x.row_stride * 4, x.evaluation_stride * 4, x.row_stride};
  const bool words = native_bf16();
  const std::int64_t row_floats = words ? (x.features + 1) / 2 : x.features;
  const std::int64_t size = row_floats * padded * x.evaluations;
  std::vector<float>& rounded = scratch.rounded();
  if (std::ssize(rounded) < size) rounded.resize(static_cast<std::size_t>(size));
  float* out = rounded.data();
  Kokkos::parallel_for("distzo2::linear::round_input",
                       Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, x.evaluations * x.tokens),
                       [=](int i) {
                         const int e = i / x.tokens, token = i % x.tokens;
                         const SimdKernels& simd = simd_kernels();
                         float* to = out + (static_cast<std::int64_t>(e) * padded + token) * row_floats;
                         const auto n = static_cast<std::size_t>(x.features);
                         simd.to_bf16(reinterpret_cast<std::uint16_t*>(to), x.row(e, token), n);
                         if (!words) {  // widen from the back, so that no word is overwritten before it is read
                           const auto* from = reinterpret_cast<const std::uint16_t*>(to);
                           for (std::size_t j = n; j-- > 0;)
                             to[j] = std::bit_cast<float>(static_cast<std::uint32_t>(from[j]) << 16);
                         }
                       });
  return {reinterpret_cast<const std::byte*>(out), row_floats * 4, row_floats * 4 * padded,
          words ? row_floats * 2 : row_floats};
}

/// Calls use(thread buffers, thread, first row, rows, evaluation, W panel) for every panel and evaluation; theta is
/// read and updated once a panel, z made once a direction.
template <class Use>
void for_each_panel(const HostExec& exec, const char* label, const Weight& w, const Perturbation& p, Compute compute,
                    PanelScratch& scratch, int tile_rows, const Use& use) {
  const int rows = panel_rows(w.cols);
  const std::vector<DirectionGroup> groups = group_by_direction(p);
  std::size_t largest = 1;
  for (const DirectionGroup& g : groups) largest = std::max(largest, g.evaluations.size());
  scratch.prepare(rows * w.cols, static_cast<std::int64_t>(tile_rows) * rows, largest);
  const Token token(exec);
  Kokkos::parallel_for(label, PanelPolicy(exec, 0, tiles(static_cast<int>(w.rows), rows)).set_chunk_size(1),
                       [&](int i) {
                         const int thread = token.acquire();
                         ThreadPanels& t = scratch.thread(thread);
                         const int row = i * rows;
                         const int n = std::min(rows, static_cast<int>(w.rows) - row);
                         const std::int64_t offset = static_cast<std::int64_t>(row) * w.cols;
                         auto start = Clock::now();
                         const float* theta = bring_up_to_date(w, offset, n * w.cols, t);
                         for (const DirectionGroup& group : groups) {
                           make_panels(w, offset, n * w.cols, theta, p, group, compute, t);
                           t.z_s += seconds_since(start);
                           start = Clock::now();
                           for (std::size_t j = 0; j < group.evaluations.size(); ++j)
                             use(t, thread, row, n, group.evaluations[j], panel(theta, group, j, compute, t));
                           t.gemm_s += seconds_since(start);
                           start = Clock::now();
                         }
                         token.release(thread);
                       });
}

/// The two GEMMs of a matrix: full panels and, where its rows are no multiple, the last one.
struct PanelGemms {
  PanelGemms(Compute compute, int tile, const Weight& w, std::int64_t lda) {
    const int rows = panel_rows(w.cols);
    const auto shape = [&](int n) {
      const bool bf16 = compute == Compute::bf16 && native_bf16();
      return GemmShape{bf16 ? Compute::bf16 : Compute::fp32, tile, n, static_cast<int>(w.cols), lda};
    };
    if (w.rows >= rows) full_ = &gemm_for(shape(rows));
    if (w.rows % rows != 0) last_ = &gemm_for(shape(static_cast<int>(w.rows % rows)));
    rows_ = rows;
  }
  Gemm& of(int n) const { return n == rows_ ? *full_ : *last_; }

private:
  Gemm* full_ = nullptr;
  Gemm* last_ = nullptr;
  int rows_ = 0;
};

}  // namespace

void linear(const HostExec& exec, const Rows& y, const Rows& x, const Weight& w, const float* bias,
            const Perturbation& p, Compute compute, PanelScratch& scratch) {
  const int tile_count = tiles(x.tokens, row_tile);
  const Input input = compute_input(exec, x, tile_count * row_tile, compute, scratch);
  const PanelGemms gemms(compute, row_tile, w, input.lda);
  for_each_panel(exec, "distzo2::linear", w, p, compute, scratch, row_tile,
                 [&](ThreadPanels& t, int thread, int row, int n, int e, const void* panel) {
                   Gemm& gemm = gemms.of(n);
                   float* tile = t.tile.data();
                   const float* b = bias == nullptr ? nullptr : bias + e * w.rows + row;
                   for (int k = 0; k < tile_count; ++k) {
                     gemm.run(thread, tile, input.row(e, k * row_tile), panel);
                     const int valid = std::min(row_tile, x.tokens - k * row_tile);
                     for (int r = 0; r < valid; ++r) {
                       float* out = y.row(e, k * row_tile + r) + row;
                       const float* in = tile + static_cast<std::int64_t>(r) * n;
                       if (b == nullptr)
                         std::copy_n(in, n, out);
                       else
                         for (int c = 0; c < n; ++c) out[c] = in[c] + b[c];
                     }
                   }
                 });
  scratch.gemm_flop += 2.0 * static_cast<double>(x.tokens) * x.evaluations * static_cast<double>(w.rows * w.cols);
}

namespace {

/// What a panel knows of a row's softmax: its largest logit, the sum of exp(logit - largest), the target's logit.
struct Partial {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0.0;
};

Partial panel_softmax(const float* logits, int n) {
  const float largest = *std::max_element(logits, logits + n);
  double sum = 0.0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(std::exp(logits[i] - largest));
  return {static_cast<double>(largest), sum};
}

}  // namespace

void linear_log_prob(const HostExec& exec, double* log_prob, const Rows& x, std::span<const std::int32_t> targets,
                     const Weight& w, const Perturbation& p, Compute compute, PanelScratch& scratch) {
  const int terms = x.tokens;
  const int tile_count = tiles(terms, head_row_tile);
  const Input input = compute_input(exec, x, tile_count * head_row_tile, compute, scratch);
  const PanelGemms gemms(compute, head_row_tile, w, input.lda);
  const int panels = tiles(static_cast<int>(w.rows), panel_rows(w.cols));
  // A partial a panel and row, merged in panel order below: the bits do not depend on which thread had which panel.
  const std::int64_t rows = static_cast<std::int64_t>(x.evaluations) * terms;
  std::vector<double>& partials = scratch.partials();
  const auto wanted = static_cast<std::size_t>(rows * (2 * panels + 1));
  if (partials.size() < wanted) partials.resize(wanted);
  auto* partial = reinterpret_cast<Partial*>(partials.data());
  double* target_logit = partials.data() + rows * 2 * panels;

  for_each_panel(exec, "distzo2::linear_log_prob", w, p, compute, scratch, head_row_tile,
                 [&](ThreadPanels& t, int thread, int row, int n, int e, const void* panel) {
                   Gemm& gemm = gemms.of(n);
                   const int index = row / panel_rows(w.cols);
                   for (int k = 0; k < tile_count; ++k) {
                     gemm.run(thread, t.tile.data(), input.row(e, k * head_row_tile), panel);
                     const int valid = std::min(head_row_tile, terms - k * head_row_tile);
                     for (int r = 0; r < valid; ++r) {
                       const int term = k * head_row_tile + r;
                       const float* logits = t.tile.data() + static_cast<std::int64_t>(r) * n;
                       const std::int64_t out = static_cast<std::int64_t>(e) * terms + term;
                       partial[out * panels + index] = panel_softmax(logits, n);
                       const int target = targets[static_cast<std::size_t>(term)];
                       if (target >= row && target < row + n)
                         target_logit[out] = static_cast<double>(logits[target - row]);
                     }
                   }
                 });
  scratch.gemm_flop += 2.0 * static_cast<double>(rows) * static_cast<double>(w.rows * w.cols);

  Kokkos::parallel_for("distzo2::linear_log_prob::merge",
                       Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, static_cast<int>(rows)),
                       [=](int i) {
                         const Partial* of_row = partial + static_cast<std::int64_t>(i) * panels;
                         Partial whole;
                         for (int j = 0; j < panels; ++j) whole.largest = std::max(whole.largest, of_row[j].largest);
                         for (int j = 0; j < panels; ++j)
                           whole.sum += of_row[j].sum * std::exp(of_row[j].largest - whole.largest);
                         log_prob[i] = target_logit[i] - whole.largest - std::log(whole.sum);
                       });
}

void lookup_rows(const HostExec& exec, const Rows& out, std::span<const std::int32_t> ids, const Weight& w,
                 const Perturbation& p, bool add, PanelScratch& scratch) {
  const std::vector<DirectionGroup> groups = group_by_direction(p);
  scratch.prepare(w.cols, w.cols, 1);
  const Token token(exec);
  const auto tokens = static_cast<int>(ids.size());
  Kokkos::parallel_for(
      "distzo2::lookup_rows", Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, tokens), [&](int i) {
        const int thread = token.acquire();
        ThreadPanels& t = scratch.thread(thread);
        const std::int64_t offset = ids[static_cast<std::size_t>(i)] * w.cols;
        float* theta = t.theta.data();
        replay(w, offset, w.cols, theta, t.scratch.data());
        for (const DirectionGroup& group : groups) {
          for (std::int64_t j = 0; j < w.cols; j += chunk_elements) {
            const std::int64_t n = std::min(chunk_elements, w.cols - j);
            if (group.direction != 0)
              fill_direction(t.z.data(), p, group.direction, w.first + static_cast<std::uint64_t>(offset + j), n);
            for (const int e : group.evaluations) {
              const float scale = p.evaluations[static_cast<std::size_t>(e)].scale;
              float* to = out.row(e, i) + j;
              for (std::int64_t c = 0; c < n; ++c) {
                const float value = group.direction == 0 ? theta[j + c] : std::fma(scale, t.z[c], theta[j + c]);
                to[c] = add ? to[c] + value : value;
              }
            }
          }
        }
        token.release(thread);
      });
}

void perturbed_vector(float* out, const Weight& w, const Perturbation& p, PanelScratch& scratch) {
  const std::int64_t n = w.rows * w.cols;
  scratch.prepare(n, 0, 1);
  ThreadPanels& t = scratch.thread(0);
  replay(w, 0, n, t.theta.data(), t.scratch.data());
  for (const DirectionGroup& group : group_by_direction(p))
    for (std::int64_t i = 0; i < n; i += chunk_elements) {
      const std::int64_t m = std::min(chunk_elements, n - i);
      if (group.direction != 0)
        fill_direction(t.z.data(), p, group.direction, w.first + static_cast<std::uint64_t>(i), m);
      for (const int e : group.evaluations) {
        float* to = out + e * n + i;
        const float* theta = t.theta.data() + i;
        if (group.direction == 0)
          std::copy_n(theta, m, to);
        else
          simd_kernels().perturb(to, theta, t.z.data(), p.evaluations[static_cast<std::size_t>(e)].scale,
                                 static_cast<std::size_t>(m));
      }
    }
}

}  // namespace distzo2
