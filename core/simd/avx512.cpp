// SPDX-License-Identifier: BSD-3-Clause
#include "core/float16.hpp"
#include "core/random.hpp"
#include "core/simd/kernels.hpp"

#include <immintrin.h>

namespace distzo2 {
namespace {

/// Eight blocks of Philox in 64-bit lanes, sixteen words or floats in 32-bit lanes.
struct Lanes {
  static constexpr std::size_t blocks = 8;
  static constexpr const char* name = "avx512";
  using Wide = std::uint64_t __attribute__((vector_size(64)));
  using Word = std::uint32_t __attribute__((vector_size(64)));
  using Float = __m512;

  static DISTZO2_FUNCTION Wide broadcast(std::uint32_t a) { return (Wide)_mm512_set1_epi64(a); }
  static DISTZO2_FUNCTION Wide count_up(std::uint32_t first) { return broadcast(first) + Wide{0, 1, 2, 3, 4, 5, 6, 7}; }
  static DISTZO2_FUNCTION Wide mul(Wide a, std::uint32_t b) {
    return (Wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
  }
  static DISTZO2_FUNCTION Wide high(Wide a) { return a >> 32; }
  static DISTZO2_FUNCTION Wide xor3(Wide a, Wide b, std::uint32_t c) {
    return (Wide)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)broadcast(c), 0x96);
  }

  static DISTZO2_FUNCTION Float splat(float a) { return _mm512_set1_ps(a); }
  static DISTZO2_FUNCTION Float to_float(Word a) { return _mm512_cvtepi32_ps((__m512i)a); }
  static DISTZO2_FUNCTION Word bits(Float a) { return (Word)a; }
  static DISTZO2_FUNCTION Float from_bits(Word a) { return (Float)a; }
  static DISTZO2_FUNCTION Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static DISTZO2_FUNCTION Float sqrt(Float a) { return _mm512_sqrt_ps(a); }
  static DISTZO2_FUNCTION Float select_bit30(Word word, Float yes, Float no) {
    return _mm512_mask_mov_ps(no, _mm512_test_epi32_mask((__m512i)word, _mm512_set1_epi32(0x40000000)), yes);
  }

  /// The words of `even` in lanes 0, 2, ..., of `odd` in lanes 1, 3, ...
  static DISTZO2_FUNCTION Word merge(Wide even, Wide odd) {
    return (Word)_mm512_mask_shuffle_epi32((__m512i)even, 0xAAAA, (__m512i)odd, _MM_PERM_CCAA);
  }
  static DISTZO2_FUNCTION void store_interleaved(float* out, Float even, Float odd) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_ps(out, _mm512_permutex2var_ps(even, low, odd));
    _mm512_storeu_ps(out + 16, _mm512_permutex2var_ps(even, high, odd));
  }
  static DISTZO2_FUNCTION void store_words(std::uint32_t* out, Wide x0, Wide x1, Wide x2, Wide x3) {
    const auto first = (__m512i)merge(x0, x1);
    const auto second = (__m512i)merge(x2, x3);
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(first, low, second));
    _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(first, high, second));
  }
};

#include "core/simd/kernels.inl"

}  // namespace

// Data alone: no function built for AVX-512 is called before the processor is known to have it.
extern const SimdKernels simd_table_avx512;
const SimdKernels simd_table_avx512 = kernel_table;

}  // namespace distzo2
