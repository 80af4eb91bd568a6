// SPDX-License-Identifier: BSD-3-Clause
#include "core/float16.hpp"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace distzo2 {
namespace {

float from_bits(std::uint32_t bits) {
  return ScalarLanes::from_bits(bits);
}

template <class Half>
class Float16Types : public ::testing::Test {};
using Halves = ::testing::Types<Bfloat16, Float16>;
TYPED_TEST_SUITE(Float16Types, Halves);

TYPED_TEST(Float16Types, every_value_is_kept_whatever_the_rounding) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const auto bits = static_cast<std::uint16_t>(h);
    const float x = TypeParam::to_float(bits);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(TypeParam::to_float(TypeParam::nearest(x))));
      EXPECT_TRUE(std::isnan(TypeParam::to_float(TypeParam::stochastic(x, 0xFFFFFFFFU))));
    } else {
      ASSERT_EQ(TypeParam::nearest(x), bits);
      for (const std::uint32_t word : {0U, 1U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
        ASSERT_EQ(TypeParam::stochastic(x, word), bits) << h;
      }
    }
  }
}

TYPED_TEST(Float16Types, nearest_takes_the_nearer_neighbour_and_of_two_the_even_one) {
  // Between every two neighbours: a quarter, the middle and three quarters of the way.
  const std::uint16_t infinity = TypeParam::nearest(std::numeric_limits<float>::infinity());
  for (std::uint32_t h = 0; h + 1 < infinity; ++h) {
    const auto below = static_cast<std::uint16_t>(h);
    const auto above = static_cast<std::uint16_t>(h + 1);
    const double low = static_cast<double>(TypeParam::to_float(below));
    const double step = static_cast<double>(TypeParam::to_float(above)) - low;
    ASSERT_EQ(TypeParam::nearest(static_cast<float>(low + 0.25 * step)), below) << h;
    ASSERT_EQ(TypeParam::nearest(static_cast<float>(low + 0.75 * step)), above) << h;
    ASSERT_EQ(TypeParam::nearest(static_cast<float>(low + 0.5 * step)), h % 2 == 0 ? below : above) << h;
    ASSERT_EQ(TypeParam::nearest(static_cast<float>(-low - 0.75 * step)), above | 0x8000U) << h;
  }
}

TYPED_TEST(Float16Types, stochastic_rounding_keeps_a_finite_value_finite_and_its_infinity) {
  const std::uint16_t infinity = TypeParam::nearest(std::numeric_limits<float>::infinity());
  const auto largest = static_cast<std::uint16_t>(infinity - 1);
  const float beyond = std::nextafter(TypeParam::to_float(largest), std::numeric_limits<float>::infinity());
  EXPECT_EQ(TypeParam::stochastic(beyond, 0xFFFFFFFFU), largest);
  EXPECT_EQ(TypeParam::stochastic(-std::numeric_limits<float>::max(), 0xFFFFFFFFU), largest | 0x8000U);
  EXPECT_EQ(TypeParam::stochastic(std::numeric_limits<float>::infinity(), 0xFFFFFFFFU), infinity);
  EXPECT_EQ(TypeParam::stochastic(-std::numeric_limits<float>::infinity(), 0), infinity | 0x8000U);
  EXPECT_EQ(TypeParam::stochastic(-0.0F, 0xFFFFFFFFU), 0x8000U);
}

TEST(Float16, fp16_to_nearest_agrees_with_the_processor) {
  std::mt19937 source(3);
  for (int i = 0; i < 300000; ++i) {
    // Any exponent, and more often those near and within fp16's range.
    auto bits = static_cast<std::uint32_t>(source());
    if (i % 4 != 0) {
      bits = (bits & 0x807FFFFFU) | ((100U + static_cast<std::uint32_t>(source()) % 45U) << 23U);
    }
    const float x = from_bits(bits);
    ASSERT_EQ(Float16::nearest(x), _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)) << std::hexfloat << x;
  }
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float x = Float16::to_float(static_cast<std::uint16_t>(h));
    if (!std::isnan(x)) {
      ASSERT_EQ(x, _cvtsh_ss(static_cast<std::uint16_t>(h)));
    }
  }
}

TEST(Float16, bf16_hand_calculated) {
  EXPECT_EQ(Bfloat16::nearest(1.0F), 0x3F80U);
  EXPECT_EQ(Bfloat16::nearest(-3.14159274F), 0xC049U);
  EXPECT_EQ(Bfloat16::nearest(std::numeric_limits<float>::max()), 0x7F80U);
  // 0x3F801234: the upper half of the word is added to 0x1234, and carries from 0xEDCC on.
  EXPECT_EQ(Bfloat16::stochastic(from_bits(0x3F801234U), 0xEDCBFFFFU), 0x3F80U);
  EXPECT_EQ(Bfloat16::stochastic(from_bits(0x3F801234U), 0xEDCC0000U), 0x3F81U);
  EXPECT_EQ(Bfloat16::stochastic(from_bits(0xBF801234U), 0xEDCC0000U), 0xBF81U);
}

// With every value of the dropped bits' random counterpart once, the mean is the value itself, exactly.
template <class Half>
double mean_over_words(float x, std::uint32_t dropped) {
  double sum = 0.0;
  for (std::uint64_t r = 0; r < (1ULL << dropped); ++r) {
    sum += static_cast<double>(Half::to_float(Half::stochastic(x, static_cast<std::uint32_t>(r << (32U - dropped)))));
  }
  return sum / static_cast<double>(1ULL << dropped);
}

TEST(Float16, stochastic_rounding_is_unbiased) {
  for (const float x : {1.0000123F, -0.019876543F, 3.3e38F, 0x1.23456p-130F, 0x1.fffffep+5F}) {
    EXPECT_EQ(mean_over_words<Bfloat16>(x, 16), static_cast<double>(x)) << x;
  }
  for (const float x : {1.0000123F, -0.019876543F, 65400.123F, 0x1.fffffep+5F, 0x1.fffffep-14F}) {
    EXPECT_EQ(mean_over_words<Float16>(x, 13), static_cast<double>(x)) << x;
  }
  // Subnormal results drop more: 14 bits at 2^-15, 20 at 2^-21, and a carry can reach the least subnormal or the first
  // normal number.
  EXPECT_EQ(mean_over_words<Float16>(0x1.fffffep-15F, 14), 0x1.fffffep-15);
  EXPECT_EQ(mean_over_words<Float16>(-0x1.234568p-15F, 14), -0x1.234568p-15);
  EXPECT_EQ(mean_over_words<Float16>(0x1.777776p-21F, 20), 0x1.777776p-21);
}

TEST(Float16, the_least_values_round_up_with_their_probability) {
  // 2^-32 is 2^-8 of fp16's least subnormal: 31 bits are dropped, and the word's high byte decides.
  EXPECT_EQ(Float16::stochastic(0x1p-32F, 0xFEFFFFFFU), 0U);
  EXPECT_EQ(Float16::stochastic(0x1p-32F, 0xFF000000U), 1U);
  // Too small for 32 bits of the word.
  EXPECT_EQ(Float16::stochastic(0x1p-57F, 0xFFFFFFFFU), 0U);
  EXPECT_EQ(Float16::stochastic(0x1p-149F, 0xFFFFFFFFU), 0U);
}

}  // namespace
}  // namespace distzo2
