// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace distzo2 {

/// Eight floats: the vector that the model kernels are written with (x86-64-v3 is the least we run on). Every reduction
/// goes through two of them, so its order is fixed by the source and not by the compiler.
using Lanes = float __attribute__((vector_size(32)));
using WordLanes = std::uint32_t __attribute__((vector_size(32)));
constexpr int lane_count = 8;

inline Lanes load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Lanes v) {
  std::memcpy(p, &v, sizeof v);
}
inline Lanes broadcast(float x) {
  return Lanes{x, x, x, x, x, x, x, x};
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Lanes larger(Lanes a, Lanes b) {
  return a > b ? a : b;
}

/// The first n < 8 floats, zeros after them; and back.
inline Lanes load_first(const float* p, int n) {
  Lanes v{};
  std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(float));
  return v;
}
inline void store_first(float* p, Lanes v, int n) {
  std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(float));
}

/// Four doubles, of the lower or the upper four lanes.
using DoubleLanes = double __attribute__((vector_size(32)));
inline DoubleLanes low_half(Lanes v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
inline DoubleLanes high_half(Lanes v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

inline float sum(Lanes v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
inline float largest(Lanes v) {
  float m = v[0];
  for (int i = 1; i < lane_count; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

/// Rows to columns: lane j of r[i] and lane i of r[j] change places.
inline void transpose(Lanes (&r)[lane_count]) {
  Lanes t[lane_count];
  for (int i = 0; i < lane_count; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  Lanes u[lane_count];
  for (int i = 0; i < lane_count; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
  }
}

/// Sum of f(8 elements of x) over n elements in a fixed order: 16 partial sums, then a tree. f(0) must be 0.
template <class F>
float sum_over(const float* x, int n, F f) {
  Lanes a{};
  Lanes b{};
  int i = 0;
  for (; i + 2 * lane_count <= n; i += 2 * lane_count) {
    a += f(load(x + i));
    b += f(load(x + i + lane_count));
  }
  if (i + lane_count <= n) {
    a += f(load(x + i));
    i += lane_count;
  }
  if (i < n) {
    // Lanes past the end must add nothing whatever f does with a zero.
    float values[lane_count] = {};
    store(values, f(load_first(x + i, n - i)));
    b += load_first(values, n - i);
  }
  return sum(a + b);
}

/// e^x. Largest relative error 1.5e-7 (1.2 ulp); exactly 1 at 0; 0 below -87.33 (no subnormal results), infinite
/// above 88.37, NaN where x is NaN. x = n ln 2 + r with |r| <= ln 2 / 2, and the Taylor polynomial of degree 7 for e^r.
inline Lanes exp(Lanes x) {
  constexpr float shift = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, which then stands in the low bits
  const Lanes shifted = fma(x, broadcast(1.44269504F), broadcast(shift));
  const Lanes n = shifted - broadcast(shift);
  Lanes r = fma(n, broadcast(-0.693147182F), x);
  r = fma(n, broadcast(1.90465421e-9F), r);
  Lanes p = broadcast(1.0F / 5040.0F);
  p = fma(p, r, broadcast(1.0F / 720.0F));
  p = fma(p, r, broadcast(1.0F / 120.0F));
  p = fma(p, r, broadcast(1.0F / 24.0F));
  p = fma(p, r, broadcast(1.0F / 6.0F));
  p = fma(p, r, broadcast(0.5F));
  p = fma(p, r, broadcast(1.0F));
  p = fma(p, r, broadcast(1.0F));
  const WordLanes exponent = std::bit_cast<WordLanes>(shifted) - std::bit_cast<std::uint32_t>(shift) + 127U;
  const Lanes y = p * std::bit_cast<Lanes>(exponent << 23U);
  const Lanes small = x < broadcast(-87.33F) ? Lanes{} : y;
  return x > broadcast(88.37F) ? broadcast(std::numeric_limits<float>::infinity()) : small;
}

/// x / (1 + e^-x), within 3 ulp.
inline Lanes silu(Lanes x) {
  return x / (broadcast(1.0F) + exp(-x));
}

/// To bf16, nearest even, and back: what a 16-bit product would see. NaN stays NaN.
inline Lanes round_bf16(Lanes x) {
  const WordLanes bits = std::bit_cast<WordLanes>(x);
  const WordLanes rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U;
  return x == x ? std::bit_cast<Lanes>(rounded) : x;
}

/// The same to fp16: beyond 65,504 (rounded) to infinity, subnormals kept.
inline Lanes round_fp16(Lanes x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// round_C of the design.
inline Lanes round_to(Lanes x, Compute compute) {
  if (compute == Compute::fp32) return x;
  return compute == Compute::bf16 ? round_bf16(x) : round_fp16(x);
}

}  // namespace distzo2
