// SPDX-License-Identifier: BSD-3-Clause
#include "core/panel_loop.hpp"

#include "core/float16.hpp"
#include "core/round_up.hpp"
#include "core/simd/kernels.hpp"

#include <cassert>
#include <string>

namespace distzo2 {

PanelInput compute_input(const HostExec& exec, const Rows& x, Compute compute, PanelScratch& scratch) {
  if (compute == Compute::fp32)
    return {reinterpret_cast<const std::byte*>(x.data), x.row_stride * 4, x.evaluation_stride * 4, x.row_stride};
  const bool fp16 = compute == Compute::fp16, words = !fp16 && native_bf16();
  const int padded = round_up(x.tokens, row_tile);
  const std::int64_t row_floats = words ? (x.features + 1) / 2 : x.features;
  const std::int64_t size = row_floats * padded * x.evaluations;
  ScratchVector<float>& rounded = scratch.rounded();
  if (std::ssize(rounded) < size) rounded.resize(static_cast<std::size_t>(size));
  float* out = rounded.data();
  static const std::string name("distzo2::linear::round_input");  // a literal would become a string at every call
  Kokkos::parallel_for(name, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, x.evaluations * x.tokens),
                       [=](int i) {
                         const int e = i / x.tokens, token = i % x.tokens;
                         const SimdKernels& simd = simd_kernels();
                         float* to = out + (static_cast<std::int64_t>(e) * padded + token) * row_floats;
                         const auto n = static_cast<std::size_t>(x.features);
                         if (fp16)
                           simd.store_nearest(reinterpret_cast<std::uint16_t*>(to), x.row(e, token), Storage::fp16, n);
                         else
                           simd.to_bf16(reinterpret_cast<std::uint16_t*>(to), x.row(e, token), n);
                         if (!words) {  // widen from the back, so that no word is overwritten before it is read
                           const auto* from = reinterpret_cast<const std::uint16_t*>(to);
                           for (std::size_t j = n; j-- > 0;)
                             to[j] = fp16 ? Float16::to_float(from[j]) : Bfloat16::to_float(from[j]);
                         }
                       });
  return {reinterpret_cast<const std::byte*>(out), row_floats * 4, row_floats * 4 * padded,
          words ? row_floats * 2 : row_floats};
}

PanelList::PanelList(std::span<const Product> products, Compute compute, std::int64_t lda)
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

Panel PanelList::operator[](int i) const {
  for (const Product& product : products_) {
    const int here = pieces_of(static_cast<int>(product.w.rows), rows_);
    if (i < here) return {&product, i * rows_, std::min(rows_, static_cast<int>(product.w.rows) - i * rows_), 0};
    i -= here;
  }
  return {};
}

}  // namespace distzo2
