// SPDX-License-Identifier: BSD-3-Clause
#include "core/random_weights.hpp"

#include "core/simd/kernels.hpp"

#include <algorithm>
#include <string_view>

namespace distzo2 {
namespace {

bool is_bias(const Tensor& tensor) {
  return std::string_view(tensor.name).ends_with(".bias");
}

}  // namespace

void random_values(const Tensor& tensor, std::uint64_t seed, std::int64_t offset, std::span<float> out) {
  if (!tensor.matrix) {
    std::ranges::fill(out, is_bias(tensor) ? 0.0F : 1.0F);
    return;
  }
  simd_kernels().fill_weights(out.data(), seed, static_cast<std::uint64_t>(tensor.first + offset), out.size());
  simd_kernels().scale(out.data(), random_weight_deviation, out.size());
}

}  // namespace distzo2
