// SPDX-License-Identifier: BSD-3-Clause
#include "core/float16.hpp"
#include "core/kernels/lanes.hpp"
#include "tests/support/attention_case.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

struct Case : AttentionCase {
  using AttentionCase::AttentionCase;

  /// softmax(q k / sqrt(d)) v in double, one query at a time, from the list of tokens it sees.
  std::vector<double> expected(int e, int head, int token, const std::vector<int>& keys) const {
    const int d = shape.head_dim;
    const int kv = shape.kv_heads * d;
    const int kv_column = head / (shape.heads / shape.kv_heads) * d;
    const float* const query = q.data() + (static_cast<std::size_t>(e) * tokens + token) * shape.heads * d + head * d;
    std::vector<double> out(d, 0.0);
    double sum = 0.0;
    for (const int key : keys) {
      std::size_t const at = (static_cast<std::size_t>(e) * tokens + key) * kv + kv_column;
      double score = 0.0;
      for (int i = 0; i < d; ++i) score += static_cast<double>(query[i]) * k[at + i];
      const double p = std::exp(score / std::sqrt(static_cast<double>(d)));
      sum += p;
      for (int i = 0; i < d; ++i) out[i] += p * v[at + i];
    }
    for (double& x : out) x /= sum;
    return out;
  }

  double worst(const std::vector<float>& out, const std::vector<AttentionSpan>& spans) const {
    double difference = 0.0;
    for (const AttentionSpan& s : spans) {
      std::vector<int> keys;
      for (int t = s.prefix_begin; t < s.prefix_end; ++t) keys.push_back(t);
      for (int t = s.query_begin; t < s.query_end; ++t) {
        keys.push_back(t);
        for (int e = 0; e < evaluations; ++e) {
          for (int head = 0; head < shape.heads; ++head) {
            const std::vector<double> want = expected(e, head, t, keys);
            std::size_t const at = ((static_cast<std::size_t>(e) * tokens + t) * shape.heads + head) * shape.head_dim;
            for (int i = 0; i < shape.head_dim; ++i) difference = std::max(difference, std::abs(want[i] - out[at + i]));
          }
        }
      }
    }
    return difference;
  }
};

TEST(Attention, of_a_hand_example) {
  const std::vector<float> out = AttentionCase::by_hand().on_host({{0, 2, 0, 0}});
  EXPECT_FLOAT_EQ(out[0], 8.0F);
  EXPECT_FLOAT_EQ(out[1], 14.0F);
}

TEST(Attention, agrees_with_double_arithmetic_over_tiles_groups_and_prefixes) {
  const std::vector<AttentionSpan> spans = {{0, 150, 0, 0}, {150, 151, 0, 150}, {151, 250, 0, 70}, {250, 255, 0, 0}};
  for (const AttentionShape shape : {AttentionShape{4, 4, 16}, AttentionShape{6, 2, 20}, AttentionShape{3, 1, 64}}) {
    Case c(shape, 2, 255);
    EXPECT_LT(c.worst(c.on_host(spans), spans), 3e-6) << shape.head_dim;
  }
}

TEST(Attention, of_scores_far_apart_neither_overflows_nor_loses_the_largest) {
  Case c({1, 1, 16}, 1, 200);
  for (float& x : c.q) x *= 200.0F;
  const std::vector<AttentionSpan> spans = {{0, 200, 0, 0}};
  EXPECT_LT(c.worst(c.on_host(spans), spans), 2e-3);  // scores of 1e3 carry an error of 1e-4 themselves
}

TEST(Attention, gives_a_sequence_the_same_bits_alone_and_packed) {
  Case packed({6, 2, 32}, 2, 300);
  const std::vector<float> together = packed.on_host({{0, 37, 0, 0}, {37, 207, 0, 0}, {207, 300, 0, 0}});
  Case alone({6, 2, 32}, 2, 170);
  const auto cut = [&](std::vector<float>& to, const std::vector<float>& from, int features) {
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < 170 * features; ++i) to[e * 170 * features + i] = from[(e * 300 + 37) * features + i];
    }
  };
  cut(alone.q, packed.q, 6 * 32);
  cut(alone.k, packed.k, 2 * 32);
  cut(alone.v, packed.v, 2 * 32);
  const std::vector<float> own = alone.on_host({{0, 170, 0, 0}});
  std::vector<float> part(own.size());
  cut(part, together, 6 * 32);
  EXPECT_EQ(own, part);
}

TEST(Attention, gives_a_continuation_of_a_prefix_the_bits_of_the_whole_sequence) {
  Case c({4, 2, 16}, 1, 180);
  EXPECT_EQ(c.on_host({{0, 180, 0, 0}}), c.on_host({{0, 101, 0, 0}, {101, 180, 0, 101}}));
}

TEST(Attention, in_16_bits_rounds_the_inputs_of_both_products_only) {
  struct Type {
    Compute compute;
    float (*round)(float);
    double scale;
  };
  // fp16 has three more significant bits: an eighth of bf16's errors.
  const auto by_bf16 = [](float x) { return round_bf16(broadcast(x))[0]; };
  const auto by_fp16 = [](float x) { return Float16::to_float(Float16::nearest(x)); };
  for (const Type& type : {Type{Compute::bf16, by_bf16, 1.0}, Type{Compute::fp16, by_fp16, 0.125}}) {
    Case c({2, 1, 64}, 1, 90);
    const std::vector<AttentionSpan> spans = {{0, 90, 0, 0}};
    const std::vector<float> out = c.on_host(spans, type.compute);
    Case rounded = c;
    for (auto* x : {&rounded.q, &rounded.k, &rounded.v})
      for (float& value : *x) value = type.round(value);
    const double of_the_weights = rounded.worst(out, spans);  // what is left: P rounded to 8 bits, values up to 2
    EXPECT_LT(of_the_weights, 4e-3 * type.scale);
    EXPECT_GT(of_the_weights, 1e-5 * type.scale);
    EXPECT_GT(c.worst(out, spans), 1e-3 * type.scale);  // and the inputs were rounded indeed
  }
}

TEST(Attention, cuts_long_spans_into_tiles_and_starts_with_the_longest) {
  std::vector<AttentionTile> tiles;
  const std::vector<AttentionSpan> spans = {{0, 10, 0, 0}, {10, 110, 0, 0}};
  attention_tiles(tiles, spans, {6, 2, 16});  // 3 rows a query: 30 and 300 rows
  ASSERT_EQ(tiles.size(), 1U + 5U);
  EXPECT_EQ(tiles.front().span, 1);
  EXPECT_EQ(tiles.front().first_row, 256);
}

}  // namespace
}  // namespace distzo2
