// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

// Device-capable without dragging Kokkos into the vector sources. Always inlined: a source built with other instruction
// sets must leave no copy of these for the linker to pick.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define DISTZO2_FUNCTION __host__ __device__ __forceinline__
#else
#define DISTZO2_FUNCTION inline __attribute__((always_inline))
#endif

namespace distzo2 {

/// Every random number is a pure function of integers (design section 2): Philox4x32-10 with key = seed and counter =
/// (block low, block high, t, stream * 2^24 + k). The functions are written once, over `L`, a set of lanes: ScalarLanes
/// here (also on devices), one set of vector lanes an instruction set in simd/. Only IEEE add, mul, fma, sqrt and
/// integer operations are used, so all of them give the same bits.
constexpr std::uint32_t generator_version = 1;

enum class Stream : std::uint32_t { direction = 0, rounding = 1, sampler = 2, weights = 3 };

/// The last word of the counter; k < 2^24 (1..q in the stream of directions, else 0).
DISTZO2_FUNCTION constexpr std::uint32_t stream_word(Stream stream, std::uint32_t k) {
  return (static_cast<std::uint32_t>(stream) << 24U) + k;
}

struct ScalarLanes {
  using Wide = std::uint64_t;  // a 32-bit word in the low half; the high half is arbitrary
  using Word = std::uint32_t;
  using Float = float;

  static DISTZO2_FUNCTION Wide mul(Wide a, std::uint32_t b) { return (a & 0xFFFFFFFFU) * b; }
  static DISTZO2_FUNCTION Wide high(Wide a) { return a >> 32U; }
  static DISTZO2_FUNCTION Wide xor3(Wide a, Wide b, std::uint32_t c) { return a ^ b ^ c; }

  static DISTZO2_FUNCTION Float splat(float a) { return a; }
  static DISTZO2_FUNCTION Float to_float(Word a) { return static_cast<float>(static_cast<std::int32_t>(a)); }
  static DISTZO2_FUNCTION Word bits(Float a) { return __builtin_bit_cast(Word, a); }
  static DISTZO2_FUNCTION Float from_bits(Word a) { return __builtin_bit_cast(Float, a); }
  static DISTZO2_FUNCTION Float fma(Float a, Float b, Float c) { return __builtin_fmaf(a, b, c); }
  static DISTZO2_FUNCTION Float sqrt(Float a) { return __builtin_sqrtf(a); }
  /// yes where bit 30 of `word` is set, else no.
  static DISTZO2_FUNCTION Float select_bit30(Word word, Float yes, Float no) {
    return (word & 0x40000000U) != 0 ? yes : no;
  }
};

/// Ten rounds of Philox4x32 in place (Salmon et al., SC11). x holds the counter, then the result, in the low halves.
template <class L>
DISTZO2_FUNCTION void philox_rounds(typename L::Wide& x0, typename L::Wide& x1, typename L::Wide& x2,
                                    typename L::Wide& x3, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32U);
  for (int round = 0; round < 10; ++round) {
    const typename L::Wide p0 = L::mul(x0, 0xD2511F53U);
    const typename L::Wide p1 = L::mul(x2, 0xCD9E8D57U);
    x0 = L::xor3(L::high(p1), x1, key0);
    x1 = p1;
    x2 = L::xor3(L::high(p0), x3, key1);
    x3 = p0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

/// Box-Muller: from two words, sqrt(-2 ln u1) * cos and sin of 2 pi u2, with u1 = (radius div 2^8 + 1) 2^-24 and
/// u2 = (angle div 2^8) 2^-24. Polynomials: minimax in relative error, coefficients rounded to fp32 from the lowest
/// order up and the rest fitted again (scripts/fit_normal_transform).
template <class L>
DISTZO2_FUNCTION void box_muller(typename L::Word radius, typename L::Word angle, typename L::Float& cosine,
                                 typename L::Float& sine) {
  using Word = typename L::Word;
  using Float = typename L::Float;

  // u1 = (1 + r) 2^-n with 1 + r in [sqrt(1/2), sqrt(2)); square = n * 2 ln 2 - 2 ln(1 + r), to 3.5e-8.
  constexpr std::uint32_t sqrt_half = 0x3F3504F3U;
  const Word u1 = L::bits(L::to_float((radius >> 8) + 1U)) - sqrt_half;
  const Float n = L::to_float(24U - (u1 >> 23));
  const Float r = L::from_bits((u1 & 0x007FFFFFU) + sqrt_half) - 1.0F;
  Float log = L::fma(L::splat(-0x1.529a3p-3F), r, L::splat(0x1.21bff8p-2F));
  log = L::fma(log, r, L::splat(-0x1.333f68p-2F));
  log = L::fma(log, r, L::splat(0x1.53dbdcp-2F));
  log = L::fma(log, r, L::splat(-0x1.98b8c2p-2F));
  log = L::fma(log, r, L::splat(0x1.000206p-1F));
  log = L::fma(log, r, L::splat(-0x1.555730p-1F));
  log = L::fma(log, r, L::splat(1.0F));
  const Float square = L::fma(n, L::splat(0x1.62e430p+0F), L::fma(r * r, log, r * -2.0F));
  const Float length = L::sqrt(square);

  // u2 = quadrant / 4 + y / 4 with y in [-1/2, 1/2), exact: bits 31 and 30 of the shifted word are the quadrant, the
  // 22 below them are put into a significand. sin and cos of y pi / 2 to 2.8e-8 and 3.9e-8.
  const Word shifted = angle + 0x20000000U;
  const Float y = L::from_bits(((shifted >> 7) & 0x007FFFFEU) | 0x3F800000U) - 1.5F;
  const Float y2 = y * y;
  Float s = L::fma(L::splat(-0x1.33198ep-8F), y2, L::splat(0x1.4680a4p-4F));
  s = L::fma(s, y2, L::splat(-0x1.4abc24p-1F));
  s = L::fma(s, y2, L::splat(0x1.921fb6p+0F)) * y;
  Float c = L::fma(L::splat(-0x1.4e78bep-6F), y2, L::splat(0x1.03b058p-2F));
  c = L::fma(c, y2, L::splat(-0x1.3bd39cp+0F));
  c = L::fma(c, y2, L::splat(1.0F));
  const Word sine_sign = shifted & 0x80000000U;
  const Word cosine_sign = (shifted ^ (shifted << 1)) & 0x80000000U;
  cosine = length * L::from_bits(L::bits(L::select_bit30(shifted, s, c)) ^ cosine_sign);
  sine = length * L::from_bits(L::bits(L::select_bit30(shifted, c, s)) ^ sine_sign);
}

// --- one number at a time: the reference for the vector kernels, the form for devices ---

struct PhiloxBlock {
  std::uint32_t w[4];
};

/// Philox4x32-10 of counter (c0, c1, c2, c3).
DISTZO2_FUNCTION PhiloxBlock philox(std::uint32_t c0, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3,
                                    std::uint64_t key) {
  std::uint64_t x0 = c0, x1 = c1, x2 = c2, x3 = c3;
  philox_rounds<ScalarLanes>(x0, x1, x2, x3, key);
  return {{static_cast<std::uint32_t>(x0), static_cast<std::uint32_t>(x1), static_cast<std::uint32_t>(x2),
           static_cast<std::uint32_t>(x3)}};
}

/// The four words of a block of a stream at step t.
DISTZO2_FUNCTION PhiloxBlock random_block(std::uint64_t seed, std::uint64_t block, std::uint32_t t, Stream stream,
                                          std::uint32_t k) {
  return philox(static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U), t, stream_word(stream, k),
                seed);
}

/// Word `index` mod 4 of block `index` div 4.
DISTZO2_FUNCTION std::uint32_t random_word(std::uint64_t seed, std::uint64_t index, std::uint32_t t, Stream stream,
                                           std::uint32_t k) {
  return random_block(seed, index / 4, t, stream, k).w[index % 4];
}

/// z[0..4): the normals of one block of words.
DISTZO2_FUNCTION void gaussian_block(const PhiloxBlock& block, float* z) {
  box_muller<ScalarLanes>(block.w[0], block.w[1], z[0], z[1]);
  box_muller<ScalarLanes>(block.w[2], block.w[3], z[2], z[3]);
}

/// +1 where bit `bit` (0..31) of the word is set, else -1.
DISTZO2_FUNCTION float rademacher_sign(std::uint32_t word, std::uint32_t bit) {
  return ScalarLanes::from_bits(0x3F800000U | ((~word << (31U - bit)) & 0x80000000U));
}

/// z(t, k) at the global indices 4 * block .. 4 * block + 3.
DISTZO2_FUNCTION void direction_block(bool gaussian, std::uint64_t seed, std::uint32_t t, std::uint32_t k,
                                      std::uint64_t block, float* z) {
  if (gaussian) {
    gaussian_block(random_block(seed, block, t, Stream::direction, k), z);
    return;
  }
  const std::uint32_t word = random_word(seed, block / 8, t, Stream::direction, k);
  for (std::uint32_t j = 0; j < 4; ++j) {
    z[j] = rademacher_sign(word, static_cast<std::uint32_t>(block % 8) * 4 + j);
  }
}

/// Normal variate of a stream at a global index: z(t, k) in the stream of directions.
DISTZO2_FUNCTION float gaussian_at(std::uint64_t seed, std::uint32_t t, Stream stream, std::uint32_t k,
                                   std::uint64_t index) {
  float z[4];
  gaussian_block(random_block(seed, index / 4, t, stream, k), z);
  return z[index % 4];
}

/// Rademacher z(t, k) at a global index: bit index mod 32 of word (index div 32) mod 4 of block index div 128.
DISTZO2_FUNCTION float rademacher_at(std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t index) {
  return rademacher_sign(random_word(seed, index / 32, t, Stream::direction, k),
                         static_cast<std::uint32_t>(index % 32));
}

}  // namespace distzo2
