// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/random.hpp"

#include <cstdint>

namespace distzo2 {

/// Conversions between fp32 and the bits of bf16 and fp16, for hosts and devices. Subnormals are kept. To nearest is
/// IEEE: to even, beyond the largest value to infinity. Stochastic (design section 2): as many high bits of `word` as
/// are dropped are added to the dropped bits before they are cut, so that the mean is the value itself (down to 2^-32
/// of a unit in the last place); a finite value stays finite, what can be represented stays as it is. NaN stays NaN.

struct Bfloat16 {
  static DISTZO2_FUNCTION float to_float(std::uint16_t h) {
    return ScalarLanes::from_bits(static_cast<std::uint32_t>(h) << 16U);
  }

  static DISTZO2_FUNCTION std::uint16_t nearest(float x) {
    const std::uint32_t bits = ScalarLanes::bits(x);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    const std::uint32_t nan = (bits >> 16U) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? nan : rounded);
  }

  static DISTZO2_FUNCTION std::uint16_t stochastic(float x, std::uint32_t word) {
    const std::uint32_t bits = ScalarLanes::bits(x);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t sum = (magnitude + (word >> 16U)) >> 16U;
    const std::uint32_t finite = sum < 0x7F7FU ? sum : 0x7F7FU;
    const std::uint32_t special = (magnitude >> 16U) | (magnitude > 0x7F800000U ? 0x40U : 0U);
    return static_cast<std::uint16_t>((magnitude < 0x7F800000U ? finite : special) | ((bits >> 16U) & 0x8000U));
  }
};

struct Float16 {
  static DISTZO2_FUNCTION float to_float(std::uint16_t h) {
    const std::uint32_t magnitude = (h & 0x7FFFU) << 13U;
    // The exponents differ by 112: a product by 2^112 is exact and makes subnormals normal.
    const std::uint32_t scaled = ScalarLanes::bits(ScalarLanes::from_bits(magnitude) * 0x1p+112F);
    const std::uint32_t special = magnitude < 0x0F800000U ? 0U : 0x7F800000U;
    return ScalarLanes::from_bits(scaled | special | ((h & 0x8000U) << 16U));
  }

  static DISTZO2_FUNCTION std::uint16_t nearest(float x) {
    const Cut cut = cut_bits(x);
    const std::uint32_t odd = cut.kept & 1U;
    const std::uint32_t up = cut.dropped > 0x80000000U - odd ? 1U : 0U;
    return finish(x, cut.kept + up, 0x7C00U);
  }

  static DISTZO2_FUNCTION std::uint16_t stochastic(float x, std::uint32_t word) {
    const Cut cut = cut_bits(x);
    // The sum's carry; the low bits of the word, beyond what is dropped, meet zeros and never carry.
    const std::uint32_t up = word > ~cut.dropped ? 1U : 0U;
    return finish(x, cut.kept + up, 0x7BFFU);
  }

private:
  struct Cut {
    std::uint32_t kept;     // bits of the fp16 value cut off toward zero
    std::uint32_t dropped;  // what was cut off, in units of 2^-32 of the last place kept
  };

  static DISTZO2_FUNCTION Cut cut_bits(float x) {
    const std::uint32_t magnitude = ScalarLanes::bits(x) & 0x7FFFFFFFU;
    const std::uint32_t exponent = magnitude >> 23U;
    const bool normal = exponent >= 113U;  // 2^-14, the least normal fp16
    const std::uint32_t significand = (magnitude & 0x007FFFFFU) | 0x00800000U;
    const std::uint32_t shift = 126U - exponent;  // of a subnormal result, in units of 2^-24
    const std::uint64_t value = normal ? magnitude - (112U << 23U) : significand;
    const std::uint64_t cut = (value << 32U) >> (normal ? 13U : (shift < 63U ? shift : 63U));
    return {static_cast<std::uint32_t>(cut >> 32U), static_cast<std::uint32_t>(cut)};
  }

  /// Puts the sign on; finite values become at most `largest`, infinity and NaN are kept.
  static DISTZO2_FUNCTION std::uint16_t finish(float x, std::uint32_t rounded, std::uint32_t largest) {
    const std::uint32_t bits = ScalarLanes::bits(x);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    const std::uint32_t finite = rounded < largest ? rounded : largest;
    const std::uint32_t nan = 0x7E00U | ((magnitude >> 13U) & 0x03FFU);
    const std::uint32_t special = magnitude > 0x7F800000U ? nan : 0x7C00U;
    return static_cast<std::uint16_t>((magnitude < 0x7F800000U ? finite : special) | ((bits >> 16U) & 0x8000U));
  }
};

}  // namespace distzo2
