// SPDX-License-Identifier: BSD-3-Clause
#include "core/random.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <vector>

namespace distzo2 {
namespace {

std::array<std::uint32_t, 4> words(const PhiloxBlock& block) {
  return {block.w[0], block.w[1], block.w[2], block.w[3]};
}

// Box-Muller as the design states it, in double and with the C library.
std::array<double, 2> reference_normals(std::uint32_t radius, std::uint32_t angle) {
  const double u1 = (static_cast<double>(radius >> 8U) + 1.0) * 0x1p-24;
  const double u2 = static_cast<double>(angle >> 8U) * 0x1p-24;
  const double length = std::sqrt(-2.0 * std::log(u1));
  return {length * std::cos(2.0 * std::numbers::pi * u2), length * std::sin(2.0 * std::numbers::pi * u2)};
}

TEST(Random, philox_gives_the_published_answers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(words(philox(0, 0, 0, 0, 0)), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(words(philox(ones, ones, ones, ones, ~std::uint64_t{0})),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(philox(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0x299f31d0a4093822)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, blocks_are_those_of_random123_under_the_stated_counter) {
  std::mt19937_64 source(1);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t seed = source();
    const std::uint64_t block = source() >> (source() % 64);
    const auto t = static_cast<std::uint32_t>(source());
    const auto stream = static_cast<std::uint32_t>(source() % 4);
    const auto k = static_cast<std::uint32_t>(source() % (1U << 24U));
    const r123::Philox4x32::ctr_type counter = {
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U), t, stream * 16777216U + k}};
    const r123::Philox4x32::key_type key = {
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)}};
    const auto expected = r123::Philox4x32()(counter, key);
    const auto made = random_block(seed, block, t, static_cast<Stream>(stream), k);
    for (int w = 0; w < 4; ++w) {
      ASSERT_EQ(made.w[w], expected[w]);
      ASSERT_EQ(random_word(seed, (block % (1ULL << 60U)) * 4 + w, t, static_cast<Stream>(stream), k),
                random_block(seed, block % (1ULL << 60U), t, static_cast<Stream>(stream), k).w[w]);
    }
  }
}

TEST(Random, normals_follow_box_muller_to_a_few_units_in_the_last_place) {
  // One of the two words runs over its whole range (and ends), the other over a few values of the kind that is hard.
  const std::vector<std::uint32_t> some = {0U,          0xFFU,       0x100U,      0x1FFFFFFFU, 0x20000000U, 0x3FFFFFFFU,
                                           0x40000000U, 0x40000100U, 0x5FFFFFFFU, 0x80000000U, 0x9E3779B9U, 0xB504F300U,
                                           0xB504F400U, 0xC0000000U, 0xE0000000U, 0xFFFFFEFFU, 0xFFFFFFFFU};
  double worst = 0.0;
  const auto check = [&](std::uint32_t radius, std::uint32_t angle) {
    float made[2];
    box_muller<ScalarLanes>(radius, angle, made[0], made[1]);
    const auto expected = reference_normals(radius, angle);
    for (int i = 0; i < 2; ++i) {
      // On the axes pi itself is inexact in the reference, and the value is zero.
      const double exact = std::abs(expected[i]) < 1e-14 ? 0.0 : expected[i];
      const double error = std::abs(static_cast<double>(made[i]) - exact);
      worst = std::max(worst, error == 0.0 ? 0.0 : error / std::abs(exact));
    }
  };
  for (const std::uint32_t fixed : some) {
    for (std::uint64_t word = 0; word < (1ULL << 32U); word += 1299709ULL) {
      check(fixed, static_cast<std::uint32_t>(word));
      check(static_cast<std::uint32_t>(word), fixed);
    }
    for (const std::uint32_t other : some) {
      check(fixed, other);
    }
  }
  EXPECT_LT(worst, 3.0 * 0x1p-23);
}

TEST(Random, the_ends_of_both_words_are_finite) {
  float cosine = 0.0F;
  float sine = 0.0F;
  box_muller<ScalarLanes>(0, 0, cosine, sine);  // u1 = 2^-24: the longest radius
  EXPECT_FLOAT_EQ(cosine, 5.7681074F);
  EXPECT_EQ(sine, 0.0F);
  box_muller<ScalarLanes>(0xFFFFFFFFU, 0, cosine, sine);  // u1 = 1
  EXPECT_EQ(cosine, 0.0F);
  EXPECT_EQ(sine, 0.0F);
  box_muller<ScalarLanes>(0, 0x40000000U, cosine, sine);
  EXPECT_EQ(cosine, 0.0F);
  EXPECT_FLOAT_EQ(sine, 5.7681074F);
  box_muller<ScalarLanes>(0, 0x80000000U, cosine, sine);
  EXPECT_FLOAT_EQ(cosine, -5.7681074F);
}

TEST(Random, normals_stand_in_the_stated_order) {
  // index 4 b + 0, 1 from words 0 and 1; 4 b + 2, 3 from words 2 and 3.
  const auto block = random_block(42, 1000, 7, Stream::direction, 2);
  for (std::uint64_t pair = 0; pair < 2; ++pair) {
    const auto expected = reference_normals(block.w[2 * pair], block.w[2 * pair + 1]);
    for (std::uint64_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(gaussian_at(42, 7, Stream::direction, 2, 4000 + 2 * pair + i), expected[i], 1e-6);
    }
  }
}

TEST(Random, normals_have_the_moments_and_tails_of_a_normal_law) {
  constexpr std::size_t n = 1 << 18;
  std::vector<float> z(n);
  double moment[5] = {};
  std::size_t beyond3 = 0;
  double neighbours = 0.0, directions = 0.0, steps = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    z[i] = gaussian_at(0, 3, Stream::direction, 1, i);
    const double x = z[i];
    for (int p = 1; p <= 4; ++p) {
      moment[p] += std::pow(x, p) / n;
    }
    beyond3 += std::abs(x) > 3.0 ? 1 : 0;
    neighbours += i > 0 ? x * static_cast<double>(z[i - 1]) / n : 0.0;
    directions += x * static_cast<double>(gaussian_at(0, 3, Stream::direction, 2, i)) / n;
    steps += x * static_cast<double>(gaussian_at(0, 4, Stream::direction, 1, i)) / n;
  }
  const double sigma = 1.0 / std::sqrt(static_cast<double>(n));  // of a mean of n unit variates
  EXPECT_LT(std::abs(moment[1]), 4 * sigma);
  EXPECT_LT(std::abs(moment[2] - 1.0), 4 * sigma * std::sqrt(2.0));
  EXPECT_LT(std::abs(moment[3]), 4 * sigma * std::sqrt(15.0));
  EXPECT_LT(std::abs(moment[4] - 3.0), 4 * sigma * std::sqrt(96.0));
  EXPECT_LT(std::abs(neighbours), 4 * sigma);
  EXPECT_LT(std::abs(directions), 4 * sigma);
  EXPECT_LT(std::abs(steps), 4 * sigma);
  const double expected3 = n * std::erfc(3.0 / std::numbers::sqrt2);
  EXPECT_LT(std::abs(static_cast<double>(beyond3) - expected3), 4 * std::sqrt(expected3));

  std::sort(z.begin(), z.end());
  double distance = 0.0;  // Kolmogorov-Smirnov; 1.95 / sqrt(n) is exceeded with probability 0.001
  for (std::size_t i = 0; i < n; ++i) {
    const double cdf = 0.5 * std::erfc(-static_cast<double>(z[i]) / std::numbers::sqrt2);
    distance = std::max({distance, cdf - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - cdf});
  }
  EXPECT_LT(distance, 1.95 * sigma);
}

TEST(Random, rademacher_signs_are_the_stated_bits) {
  std::size_t positive = 0;
  constexpr std::uint64_t first = (1ULL << 33U) - 1000;
  for (std::uint64_t i = first; i < first + 20000; ++i) {
    const auto block = random_block(9, i / 128, 5, Stream::direction, 1);
    const bool set = ((block.w[(i / 32) % 4] >> (i % 32)) & 1U) != 0;
    ASSERT_EQ(rademacher_at(9, 5, 1, i), set ? 1.0F : -1.0F);
    positive += set ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(positive), 10000.0, 4 * std::sqrt(5000.0));
}

}  // namespace
}  // namespace distzo2
