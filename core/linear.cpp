// SPDX-License-Identifier: BSD-3-Clause
#include "core/linear.hpp"

#include "core/clock.hpp"
#include "core/kernels/lanes.hpp"
#include "core/pack_weights.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"

#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace distzo2 {
namespace {

using Token = Kokkos::Experimental::UniqueToken<HostExec>;
using PanelPolicy = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<int>>;

/// x in the compute precision: itself in fp32, else a copy rounded to bf16 (words, or fp32 where there is no bf16
/// GEMM).
struct Input {
  const std::byte* data = nullptr;
  std::int64_t row_bytes = 0, evaluation_bytes = 0;
  std::int64_t lda = 0;
  const void* row(int e, int token) const { return data + e * evaluation_bytes + token * row_bytes; }
};

Input compute_input(const HostExec& exec, const Rows& x, Compute compute, PanelScratch& scratch) {
  if (compute == Compute::fp32)
    return {reinterpret_cast<const std::byte*>(x.data), x.row_stride * 4, x.evaluation_stride * 4, x.row_stride};
  const bool words = native_bf16();
  const int padded = round_up(x.tokens, row_tile);
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

/// A panel of one of the matrices, rows [row, row + n) of W, under one evaluation.
struct Panel {
  const Product* product;
  int row, n, evaluation;
};

/// The panels of all products, one after another, with the GEMMs of whole panels and of each product's last one.
class PanelList {
public:
  PanelList(std::span<const Product> products, Compute compute, std::int64_t lda)
      : products_(products), rows_(panel_rows(products.front().w.cols)) {
    assert(products.size() <= most_products);
    const Compute inputs = compute == Compute::bf16 && native_bf16() ? Compute::bf16 : Compute::fp32;
    whole_ = {inputs, row_tile, rows_, static_cast<int>(products.front().w.cols), lda};
    whole_gemm_ = &gemm_for(whole_);
    for (std::size_t i = 0; i < products.size(); ++i) {
      GemmShape last = whole_;
      last.n = static_cast<int>(products[i].w.rows) % rows_;
      last_gemm_[i] = last.n == 0 ? whole_gemm_ : &gemm_for(last);
      count_ += pieces_of(static_cast<int>(products[i].w.rows), rows_);
    }
  }
  int count() const { return count_; }
  int rows() const { return rows_; }
  const GemmShape& whole() const { return whole_; }
  Panel operator[](int i) const {
    for (const Product& product : products_) {
      const int here = pieces_of(static_cast<int>(product.w.rows), rows_);
      if (i < here) return {&product, i * rows_, std::min(rows_, static_cast<int>(product.w.rows) - i * rows_), 0};
      i -= here;
    }
    return {};
  }
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
  const Input input = compute_input(exec, x, compute, scratch);
  const PanelList panels(products, compute, input.lda);
  const std::int64_t cols = products.front().w.cols;
  const std::vector<DirectionGroup>& groups = scratch.groups(p);
  std::size_t largest = 1;
  for (const DirectionGroup& g : groups) largest = std::max(largest, g.evaluations.size());
  scratch.prepare(panels.rows() * cols, largest);
  scratch.prepare_gemm(packed_floats(panels.whole()), static_cast<std::size_t>(row_tile * panels.rows()));
  const Token token(exec);
  Kokkos::parallel_for(label, PanelPolicy(exec, 0, panels.count()).set_chunk_size(1), [&](int i) {
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

}  // namespace

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

/// A row's softmax so far: its largest logit, the sum of exp(logit - largest).
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

namespace {

/// Panels that leave their partials before these are merged.
int panels_a_round(std::int64_t rows) {
  constexpr std::int64_t most_partials = std::int64_t{1} << 20, fewest_panels = 64;
  return static_cast<int>(std::max(most_partials / std::max<std::int64_t>(rows, 1), fewest_panels));
}

}  // namespace

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
  const std::vector<int>& by_target = scratch_.by_target;
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
  Kokkos::parallel_for(
      "distzo2::log_prob_head::merge", Kokkos::RangePolicy<HostExec, Kokkos::IndexType<std::int64_t>>(exec_, 0, rows),
      [=](std::int64_t i) {
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

namespace {

/// Calls put(e, i, values, n) with fma(scale_e, z, theta) of elements [offset + i, offset + i + n) of w, for every
/// evaluation e and chunk of [offset, offset + size): pending records replayed, nothing written.
template <class Put>
void for_each_perturbed_chunk(const Weight& w, std::int64_t offset, std::int64_t size, const Perturbation& p,
                              const std::vector<DirectionGroup>& groups, ThreadPanels& t, const Put& put) {
  replay(w, offset, size, t.theta.data(), t.scratch.data());
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
  const Token token(exec);
  const auto tokens = static_cast<int>(ids.size());
  Kokkos::parallel_for("distzo2::lookup_rows", Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, tokens),
                       [&](int row) {
                         const int thread = token.acquire();
                         const std::int32_t id = ids[static_cast<std::size_t>(row)];
                         Weight looked_up = w.gathered ? rows_of(w, row, row + 1) : rows_of(w, id, id + 1);
                         looked_up.first = w.first + static_cast<std::uint64_t>(id * w.cols);
                         for_each_perturbed_chunk(looked_up, 0, w.cols, p, groups, scratch.thread(thread),
                                                  [&](int e, std::int64_t i, const float* values, std::int64_t n) {
                                                    float* to = out.row(e, row) + i;
                                                    for (std::int64_t c = 0; c < n; ++c)
                                                      to[c] = add ? to[c] + values[c] : values[c];
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
