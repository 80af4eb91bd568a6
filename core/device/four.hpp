// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/float16.hpp"
#include "core/precision.hpp"

#include <cstddef>
#include <cstdint>

namespace distzo2 {

// Four neighbouring values, the unit in which z is made, to and from memory of any precision. Elements outside [0, n)
// are left alone; what is whole and aligned moves in one access.

namespace detail {

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T v[4];
};

template <class T>
DISTZO2_FUNCTION bool moves_whole(const T* p, std::int64_t i, std::int64_t n) {
  return i >= 0 && i + 4 <= n && reinterpret_cast<std::uintptr_t>(p) % (4 * sizeof(T)) == 0;
}

template <class T, class Convert>
DISTZO2_FUNCTION void load_four_of(float* x, const T* p, std::int64_t i, std::int64_t n, const Convert& convert) {
  if (moves_whole(p, i, n)) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(p);
    for (int j = 0; j < 4; ++j) x[j] = convert(four.v[j]);
  } else {
    for (int j = 0; j < 4; ++j) x[j] = i + j >= 0 && i + j < n ? convert(p[j]) : 0.0F;
  }
}

template <class T, class Convert>
DISTZO2_FUNCTION void store_four_of(T* p, const float* x, std::int64_t i, std::int64_t n, const Convert& convert) {
  if (moves_whole(p, i, n)) {
    Four<T> four;
    for (int j = 0; j < 4; ++j) four.v[j] = convert(x[j]);
    *reinterpret_cast<Four<T>*>(p) = four;
  } else {
    for (int j = 0; j < 4; ++j)
      if (i + j >= 0 && i + j < n) p[j] = convert(x[j]);
  }
}

struct AsIs {
  DISTZO2_FUNCTION float operator()(float x) const { return x; }
};
template <class Half>
struct Widen {
  DISTZO2_FUNCTION float operator()(std::uint16_t x) const { return Half::to_float(x); }
};
template <class Half>
struct Nearest {
  DISTZO2_FUNCTION std::uint16_t operator()(float x) const { return Half::nearest(x); }
};

}  // namespace detail

/// x[0..4) = elements i .. i + 3 of an array of n, `i` from -3 on.
DISTZO2_FUNCTION void load_four(float* x, const std::byte* data, Storage storage, std::int64_t i, std::int64_t n) {
  if (storage == Storage::fp32)
    detail::load_four_of(x, reinterpret_cast<const float*>(data) + i, i, n, detail::AsIs());
  else if (storage == Storage::bf16)
    detail::load_four_of(x, reinterpret_cast<const std::uint16_t*>(data) + i, i, n, detail::Widen<Bfloat16>());
  else
    detail::load_four_of(x, reinterpret_cast<const std::uint16_t*>(data) + i, i, n, detail::Widen<Float16>());
}

/// Elements i .. i + 3 of an array of n = x[0..4), to nearest. Storage and Compute name the same three types.
DISTZO2_FUNCTION void store_four(std::byte* data, Storage storage, const float* x, std::int64_t i, std::int64_t n) {
  if (storage == Storage::fp32)
    detail::store_four_of(reinterpret_cast<float*>(data) + i, x, i, n, detail::AsIs());
  else if (storage == Storage::bf16)
    detail::store_four_of(reinterpret_cast<std::uint16_t*>(data) + i, x, i, n, detail::Nearest<Bfloat16>());
  else
    detail::store_four_of(reinterpret_cast<std::uint16_t*>(data) + i, x, i, n, detail::Nearest<Float16>());
}

/// round_C, as fp32.
DISTZO2_FUNCTION float round_to(float x, Compute compute) {
  if (compute == Compute::bf16) return Bfloat16::to_float(Bfloat16::nearest(x));
  return compute == Compute::fp16 ? Float16::to_float(Float16::nearest(x)) : x;
}

/// The storage type whose bits a compute type has.
DISTZO2_FUNCTION Storage as_storage(Compute compute) {
  return compute == Compute::fp32 ? Storage::fp32 : compute == Compute::bf16 ? Storage::bf16 : Storage::fp16;
}

}  // namespace distzo2
