// SPDX-License-Identifier: BSD-3-Clause
#include "core/pack_weights.hpp"

#include "core/kernels/lanes.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace distzo2 {
namespace {

/// out (words, rows), `ldo` between its rows, from in (rows, words). 32-bit words of whatever kind: nothing computes.
void transpose_words(float* out, std::int64_t ldo, const float* in, std::int64_t rows, std::int64_t words) {
  constexpr std::int64_t line = 2 * lane_count;  // a cache line of each row at a time: rows may share a cache set
  const std::int64_t whole_rows = rows / lane_count * lane_count, whole_words = words / line * line;
  for (std::int64_t w = 0; w < whole_words; w += line)
    for (std::int64_t r = 0; r < whole_rows; r += lane_count)
      for (std::int64_t half = w; half < w + line; half += lane_count) {
        Lanes block[lane_count];
        for (int i = 0; i < lane_count; ++i) block[i] = load(in + (r + i) * words + half);
        transpose(block);
        for (int i = 0; i < lane_count; ++i) store(out + (half + i) * ldo + r, block[i]);
      }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t w = r < whole_rows ? whole_words : 0; w < words; ++w)
      std::memcpy(out + w * ldo + r, in + r * words + w, sizeof(float));
}

/// Rows of an odd number of bf16 words are not whole pairs.
void pack_odd(float* packed, const std::uint16_t* b, int n, int k) {
  for (int r = 0; r < n; ++r)
    for (int d = 0; d < k; d += 2) {
      const std::uint16_t pair[2] = {b[r * k + d], d + 1 < k ? b[r * k + d + 1] : std::uint16_t{0}};
      std::memcpy(packed + d / 2 * packed_bf16_rows + r, pair, sizeof pair);
    }
}

std::int64_t depth(const GemmShape& s) {  // rows of the packed form
  return s.compute == Compute::fp32 ? s.k : round_up(s.k, 32) / 2;
}

}  // namespace

std::size_t packed_floats(const GemmShape& s) {
  return static_cast<std::size_t>(depth(s) * (s.compute == Compute::fp32 ? s.n : packed_bf16_rows));
}

void pack_weights(const GemmShape& s, float* packed, const void* b) {
  if (s.compute == Compute::fp32) {
    transpose_words(packed, s.n, static_cast<const float*>(b), s.n, s.k);
    return;
  }
  const std::int64_t pairs = (s.k + 1) / 2;
  if (s.k % 2 == 0)
    transpose_words(packed, packed_bf16_rows, static_cast<const float*>(b), s.n, pairs);
  else
    pack_odd(packed, static_cast<const std::uint16_t*>(b), s.n, s.k);
  std::fill(packed + pairs * packed_bf16_rows, packed + depth(s) * packed_bf16_rows, 0.0F);
}

}  // namespace distzo2
