// SPDX-License-Identifier: BSD-3-Clause
#include "core/random_weights.hpp"

#include "core/simd/kernels.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace distzo2 {
namespace {

constexpr std::size_t piece = 4096;  // values on the way to 16 bits

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

void random_chunk(const TensorTable& table, const Chunk& chunk, Storage storage, std::uint64_t seed, std::byte* to) {
  if (!chunk.matrix()) {
    auto* const values = reinterpret_cast<float*>(to);
    std::memset(to, 0, chunk.bytes);
    for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
      const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
      random_values(t, seed, 0, {values + (t.first - chunk.first), static_cast<std::size_t>(t.size())});
    }
    return;
  }
  const Tensor& tensor = table.tensors[static_cast<std::size_t>(chunk.tensor_begin)];
  const std::int64_t offset = chunk.first - tensor.first;
  const auto elements = static_cast<std::size_t>(chunk.elements);
  if (storage == Storage::fp32) {
    random_values(tensor, seed, offset, {reinterpret_cast<float*>(to), elements});
    return;
  }
  float values[piece];
  for (std::size_t at = 0; at < elements; at += piece) {
    const std::size_t n = std::min(piece, elements - at);
    random_values(tensor, seed, offset + static_cast<std::int64_t>(at), {values, n});
    simd_kernels().store_nearest(reinterpret_cast<std::uint16_t*>(to) + at, values, storage, n);
  }
}

}  // namespace distzo2
