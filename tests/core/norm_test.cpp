// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/norm.hpp"

#include "core/kernels/elementwise.hpp"
#include "core/kernels/lanes.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace distzo2 {
namespace {

Rows rows_of(std::vector<float>& memory, int evaluations, int tokens, int features) {
  return Rows{memory.data(), evaluations, tokens, features, features, static_cast<std::int64_t>(tokens) * features};
}

TEST(Norm, rms_norm_of_a_hand_example) {
  // mean of squares of (3, 4) is 12.5; of (1, 7) it is 25.
  std::vector<float> x = {3, 4, 1, 7};
  const std::vector<float> weight = {2, 10};
  const Rows rows = rows_of(x, 1, 2, 2);
  rms_norm(HostExec(), rows, rows, weight.data(), 2, 0.0);
  EXPECT_FLOAT_EQ(x[0], 6.0F / std::sqrt(12.5F));
  EXPECT_FLOAT_EQ(x[1], 40.0F / std::sqrt(12.5F));
  EXPECT_FLOAT_EQ(x[2], 0.4F);
  EXPECT_FLOAT_EQ(x[3], 14.0F);
}

TEST(Norm, rms_norm_takes_each_head_and_each_evaluation_apart) {
  std::vector<float> x = {3, 4, 30, 40, 3, 4, 30, 40};
  const std::vector<float> weight = {1, 1, 5, 5};
  const Rows rows = rows_of(x, 2, 1, 4);
  rms_norm(HostExec(), rows, rows, weight.data(), 2, 0.0);
  EXPECT_FLOAT_EQ(x[0], 3.0F / std::sqrt(12.5F));
  EXPECT_FLOAT_EQ(x[2], x[0]);
  EXPECT_FLOAT_EQ(x[4], 5.0F * x[0]);
}

TEST(Norm, eps_is_added_to_the_mean_of_squares) {
  std::vector<float> x(3, 0.5F);
  const std::vector<float> weight(3, 1.0F);
  const Rows rows = rows_of(x, 1, 1, 3);
  rms_norm(HostExec(), rows, rows, weight.data(), 3, 0.75);
  EXPECT_FLOAT_EQ(x[2], 0.5F);
}

TEST(Norm, layer_norm_agrees_with_double_arithmetic_at_every_width) {
  for (const int n : {1, 5, 8, 15, 16, 17, 33, 768}) {
    std::vector<float> x(n), y(n), weight(n), bias(n);
    for (int i = 0; i < n; ++i) {
      x[i] = std::sin(static_cast<float>(i)) * 3.0F + 1.5F;
      weight[i] = 1.0F + 0.1F * static_cast<float>(i % 7);
      bias[i] = 0.01F * static_cast<float>(i % 5);
    }
    double mean = 0.0;
    double variance = 0.0;
    for (const float v : x) mean += v / static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    layer_norm(HostExec(), rows_of(y, 1, 1, n), rows_of(x, 1, 1, n), weight.data(), bias.data(), 1e-5);
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(y[i], (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i], 2e-6) << n;
    }
    layer_norm(HostExec(), rows_of(y, 1, 1, n), rows_of(x, 1, 1, n), nullptr, nullptr, 1e-5);
    EXPECT_NEAR(y[n - 1], (x[n - 1] - mean) / std::sqrt(variance + 1e-5), 2e-6) << n;
  }
}

TEST(Lanes, exp_is_within_its_stated_error) {
  double worst = 0.0;
  for (float x = -87.32F; x < 88.36F; x += 0.000917F) {
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exp(broadcast(x))[3]) - expected) / expected);
  }
  EXPECT_LT(worst, 1.5e-7);
  EXPECT_EQ(exp(broadcast(0.0F))[0], 1.0F);
  EXPECT_EQ(exp(broadcast(-std::numeric_limits<float>::infinity()))[0], 0.0F);
  EXPECT_EQ(exp(broadcast(-1e30F))[0], 0.0F);
  EXPECT_TRUE(std::isinf(exp(broadcast(89.0F))[0]));
  EXPECT_TRUE(std::isnan(exp(broadcast(std::numeric_limits<float>::quiet_NaN()))[0]));
}

TEST(Lanes, silu_is_within_its_stated_error) {
  for (float x = -80.0F; x < 80.0F; x += 0.0137F) {
    const double expected = x / (1.0 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(silu(broadcast(x))[0], expected, 3.6e-7 * std::abs(expected)) << x;
  }
  EXPECT_EQ(silu(broadcast(-100.0F))[0], 0.0F);
}

TEST(Lanes, rounding_to_bf16_goes_to_the_nearest_even) {
  // bf16 keeps 7 bits after the point: 1 + 2^-8 lies between 1 (even) and 1 + 2^-7 (odd).
  EXPECT_EQ(round_bf16(broadcast(1.0F + 0x1p-8F))[0], 1.0F);
  EXPECT_EQ(round_bf16(broadcast(1.0F + 0x1p-8F + 0x1p-20F))[0], 1.0F + 0x1p-7F);
  EXPECT_EQ(round_bf16(broadcast(1.0F + 0x3p-8F))[0], 1.0F + 0x1p-6F);
  EXPECT_TRUE(std::isnan(round_bf16(broadcast(std::bit_cast<float>(0x7FFFFFFFU)))[0]));
}

TEST(Elementwise, multiplies_and_cuts_by_rows) {
  std::vector<float> gate(11), up(11);
  for (int i = 0; i < 11; ++i) {
    gate[i] = 0.5F * static_cast<float>(i - 5);
    up[i] = static_cast<float>(i + 1);
  }
  silu_multiply(HostExec(), rows_of(gate, 1, 1, 11), rows_of(up, 1, 1, 11));
  EXPECT_NEAR(gate[0], 1.0F * -2.5F / (1.0F + std::exp(2.5F)), 1e-6F);
  EXPECT_NEAR(gate[10], 11.0F * 2.5F / (1.0F + std::exp(-2.5F)), 1e-5F);
  std::vector<float> x = {-1.0F, 2.0F, std::numeric_limits<float>::quiet_NaN()};
  relu(HostExec(), rows_of(x, 1, 1, 3));
  EXPECT_EQ(x[0], 0.0F);
  EXPECT_EQ(x[1], 2.0F);
  EXPECT_TRUE(std::isnan(x[2]));
}

}  // namespace
}  // namespace distzo2
