// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

// Values of transformers 5.24 (LlamaRotaryEmbedding.inv_freq, and its cos and sin at position 5001); they are fp32.

TEST(Rope, frequencies_have_the_bits_of_transformers) {
  const std::vector<float> expected = {1.0F,           0.316227764F,   0.100000001F,   0.0316227786F,
                                       0.00999999978F, 0.00316227786F, 0.00100000005F, 0.000316227786F};
  EXPECT_EQ(rope_frequencies(RopeConfig{}, 16), expected);
}

TEST(Rope, llama3_scaling_keeps_blends_and_divides) {
  RopeConfig rope{500000.0, true, 8.0, 1.0, 4.0, 8192.0};
  const std::vector<float> expected = {1.0F,
                                       0.440366626F,
                                       0.193922758F,
                                       0.0853971019F,
                                       0.0376060307F,
                                       0.0165604409F,
                                       0.00729266508F,
                                       0.00321144611F,
                                       0.000524846022F,
                                       7.78465546e-05F,
                                       3.42810235e-05F,
                                       1.50962178e-05F,
                                       6.64786967e-06F,
                                       2.92749974e-06F,
                                       1.28917316e-06F,
                                       5.6770881e-07F};
  const std::vector<float> got = rope_frequencies(rope, 32);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_FLOAT_EQ(got[i], expected[i]) << i;  // within 4 ulp
  rope.original_max_positions = 64.0;
  const std::vector<float> short_context = rope_frequencies(rope, 16);
  EXPECT_FLOAT_EQ(short_context[1], 0.079403013F);    // blended
  EXPECT_FLOAT_EQ(short_context[2], 0.00470075384F);  // divided by 8
}

TEST(Rope, table_agrees_with_transformers_thousands_of_positions_on) {
  RopeConfig rope;
  rope.theta = 1e6;
  RopeTable table;
  table.reserve(rope, 128, 3);
  table.reserve(rope, 128, 5002);
  const float* const row = table.at(5001);
  const std::vector<float> cosines = {0.91491282F, -0.798179686F, 0.660593987F, -0.997382939F};
  const std::vector<float> sines = {-0.403651565F, 0.602419436F, -0.75074333F, -0.072299391F};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(row[i], cosines[i], 1e-7);
    EXPECT_NEAR(row[64 + i], sines[i], 1e-7);
  }
  EXPECT_EQ(table.at(0)[0], 1.0F);
  EXPECT_EQ(table.at(0)[64], 0.0F);
}

TEST(Rope, rotates_the_two_halves_of_every_head) {
  // head_dim 2 has one frequency, 1: the pair (a, b) turns by `position` radians.
  RopeTable table;
  table.reserve(RopeConfig{}, 2, 8);
  std::vector<float> x = {1, 0, 0, 2, 1, 0, 0, 2};  // two tokens, two heads
  const Rows rows{x.data(), 1, 2, 4, 4, 8};
  const std::vector<std::int32_t> positions = {0, 3};
  rotate(HostExec(), rows, 2, positions, table);
  EXPECT_EQ(x[0], 1.0F);
  EXPECT_EQ(x[3], 2.0F);
  EXPECT_FLOAT_EQ(x[4], std::cos(3.0F));
  EXPECT_FLOAT_EQ(x[5], std::sin(3.0F));
  EXPECT_FLOAT_EQ(x[6], -2.0F * std::sin(3.0F));
  EXPECT_FLOAT_EQ(x[7], 2.0F * std::cos(3.0F));
}

TEST(Rope, pairs_features_half_a_head_apart) {
  RopeTable table;
  table.reserve(RopeConfig{}, 4, 2);  // frequencies 1 and 0.01
  std::vector<float> x = {1, 0, 0, 10};
  const std::vector<std::int32_t> positions = {1};
  rotate(HostExec(), Rows{x.data(), 1, 1, 4, 4, 4}, 4, positions, table);
  EXPECT_FLOAT_EQ(x[0], std::cos(1.0F));
  EXPECT_FLOAT_EQ(x[2], std::sin(1.0F));
  EXPECT_FLOAT_EQ(x[1], -10.0F * std::sin(0.01F));
  EXPECT_FLOAT_EQ(x[3], 10.0F * std::cos(0.01F));
}

}  // namespace
}  // namespace distzo2
