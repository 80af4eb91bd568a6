// SPDX-License-Identifier: BSD-3-Clause
#include "core/float16.hpp"
#include "core/random.hpp"
#include "core/simd/kernels.hpp"

#include <immintrin.h>

namespace distzo2 {
namespace {

/// Four blocks of Philox in 64-bit lanes, eight words or floats in 32-bit lanes.
struct Lanes {
  static constexpr std::size_t blocks = 4;
  static constexpr const char* name = "avx2";
  using Wide = std::uint64_t __attribute__((vector_size(32)));
  using Word = std::uint32_t __attribute__((vector_size(32)));
  using Float = __m256;

  static DISTZO2_FUNCTION Wide broadcast(std::uint32_t a) { return (Wide)_mm256_set1_epi64x(a); }
  static DISTZO2_FUNCTION Wide count_up(std::uint32_t first) { return broadcast(first) + Wide{0, 1, 2, 3}; }
  static DISTZO2_FUNCTION Wide mul(Wide a, std::uint32_t b) {
    return (Wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
  }
  static DISTZO2_FUNCTION Wide high(Wide a) { return a >> 32; }
  static DISTZO2_FUNCTION Wide xor3(Wide a, Wide b, std::uint32_t c) { return a ^ b ^ broadcast(c); }

  static DISTZO2_FUNCTION Float splat(float a) { return _mm256_set1_ps(a); }
  static DISTZO2_FUNCTION Float to_float(Word a) { return _mm256_cvtepi32_ps((__m256i)a); }
  static DISTZO2_FUNCTION Word bits(Float a) { return (Word)a; }
  static DISTZO2_FUNCTION Float from_bits(Word a) { return (Float)a; }
  static DISTZO2_FUNCTION Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static DISTZO2_FUNCTION Float sqrt(Float a) { return _mm256_sqrt_ps(a); }
  static DISTZO2_FUNCTION Float select_bit30(Word word, Float yes, Float no) {
    return _mm256_blendv_ps(no, yes, (Float)(word << 1));
  }

  /// The words of `even` in lanes 0, 2, ..., of `odd` in lanes 1, 3, ...
  static DISTZO2_FUNCTION Word merge(Wide even, Wide odd) {
    return (Word)_mm256_blend_epi32((__m256i)even, (__m256i)(odd << 32), 0xAA);
  }
  static DISTZO2_FUNCTION void store_interleaved(float* out, Float even, Float odd) {
    const __m256 low = _mm256_unpacklo_ps(even, odd);
    const __m256 high = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(out, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(out + 8, _mm256_permute2f128_ps(low, high, 0x31));
  }
  static DISTZO2_FUNCTION void store_words(std::uint32_t* out, Wide x0, Wide x1, Wide x2, Wide x3) {
    const auto first = (__m256i)merge(x0, x1);
    const auto second = (__m256i)merge(x2, x3);
    const __m256i low = _mm256_unpacklo_epi64(first, second);
    const __m256i high = _mm256_unpackhi_epi64(first, second);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 8), _mm256_permute2x128_si256(low, high, 0x31));
  }
};

#include "core/simd/kernels.inl"

}  // namespace

const SimdKernels& simd_kernels_avx2() {
  return kernel_table;
}

}  // namespace distzo2
