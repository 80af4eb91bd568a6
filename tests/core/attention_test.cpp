// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/attention.hpp"

#include "core/float16.hpp"
#include "core/kernels/lanes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace distzo2 {
namespace {

struct Case {
  AttentionShape shape;
  int evaluations, tokens;
  std::vector<float> q, k, v;

  Case(AttentionShape s, int e, int n) : shape(s), evaluations(e), tokens(n) {
    std::uint32_t state = 12345;
    const auto fill = [&](std::vector<float>& x, int features) {
      x.resize(static_cast<std::size_t>(e) * n * features);
      for (float& value : x) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(state >> 8U) * 0x1p-22F - 2.0F;  // uniform in [-2, 2)
      }
    };
    fill(q, s.heads * s.head_dim);
    fill(k, s.kv_heads * s.head_dim);
    fill(v, s.kv_heads * s.head_dim);
  }

  Rows rows(std::vector<float>& x, int features) const {
    return Rows{x.data(), evaluations, tokens, features, features, static_cast<std::int64_t>(tokens) * features};
  }

  std::vector<float> run(const std::vector<AttentionSpan>& spans, Compute compute = Compute::fp32) {
    const HostExec exec;
    std::vector<AttentionTile> tiles;
    attention_tiles(tiles, spans, shape);
    std::vector<float> scratch(attention_scratch(shape.head_dim) * static_cast<std::size_t>(exec.concurrency()));
    std::vector<float> out(q.size());
    const int kv = shape.kv_heads * shape.head_dim;
    attention(exec, rows(out, shape.heads * shape.head_dim), rows(q, shape.heads * shape.head_dim), rows(k, kv),
              rows(v, kv), shape, spans, tiles, compute, scratch.data());
    return out;
  }

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
  // One head of one feature: scores of token 1 are ln 3 * (0, 1), so its weights are 1/4 and 3/4.
  Case c({1, 1, 1}, 1, 2);
  c.q = {5.0F, std::log(3.0F)};
  c.k = {0.0F, 1.0F};
  c.v = {8.0F, 16.0F};
  const std::vector<float> out = c.run({{0, 2, 0, 0}});
  EXPECT_FLOAT_EQ(out[0], 8.0F);
  EXPECT_FLOAT_EQ(out[1], 14.0F);
}

TEST(Attention, agrees_with_double_arithmetic_over_tiles_groups_and_prefixes) {
  const std::vector<AttentionSpan> spans = {{0, 150, 0, 0}, {150, 151, 0, 150}, {151, 250, 0, 70}, {250, 255, 0, 0}};
  for (const AttentionShape shape : {AttentionShape{4, 4, 16}, AttentionShape{6, 2, 20}, AttentionShape{3, 1, 64}}) {
    Case c(shape, 2, 255);
    EXPECT_LT(c.worst(c.run(spans), spans), 3e-6) << shape.head_dim;
  }
}

TEST(Attention, of_scores_far_apart_neither_overflows_nor_loses_the_largest) {
  Case c({1, 1, 16}, 1, 200);
  for (float& x : c.q) x *= 200.0F;
  const std::vector<AttentionSpan> spans = {{0, 200, 0, 0}};
  EXPECT_LT(c.worst(c.run(spans), spans), 2e-3);  // scores of 1e3 carry an error of 1e-4 themselves
}

TEST(Attention, gives_a_sequence_the_same_bits_alone_and_packed) {
  Case packed({6, 2, 32}, 2, 300);
  const std::vector<float> together = packed.run({{0, 37, 0, 0}, {37, 207, 0, 0}, {207, 300, 0, 0}});
  Case alone({6, 2, 32}, 2, 170);
  const auto cut = [&](std::vector<float>& to, const std::vector<float>& from, int features) {
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < 170 * features; ++i) to[e * 170 * features + i] = from[(e * 300 + 37) * features + i];
    }
  };
  cut(alone.q, packed.q, 6 * 32);
  cut(alone.k, packed.k, 2 * 32);
  cut(alone.v, packed.v, 2 * 32);
  const std::vector<float> own = alone.run({{0, 170, 0, 0}});
  std::vector<float> part(own.size());
  cut(part, together, 6 * 32);
  EXPECT_EQ(own, part);
}

TEST(Attention, gives_a_continuation_of_a_prefix_the_bits_of_the_whole_sequence) {
  Case c({4, 2, 16}, 1, 180);
  EXPECT_EQ(c.run({{0, 180, 0, 0}}), c.run({{0, 101, 0, 0}, {101, 180, 0, 101}}));
}

TEST(Attention, in_bf16_rounds_the_inputs_of_both_products_only) {
  Case c({2, 1, 64}, 1, 90);
  const std::vector<AttentionSpan> spans = {{0, 90, 0, 0}};
  const std::vector<float> out = c.run(spans, Compute::bf16);
  Case rounded = c;
  for (auto* x : {&rounded.q, &rounded.k, &rounded.v}) {
    for (float& value : *x) value = round_bf16(broadcast(value))[0];
  }
  const double of_the_weights = rounded.worst(out, spans);  // what is left: P rounded to 8 bits, values up to 2
  EXPECT_LT(of_the_weights, 4e-3);
  EXPECT_GT(of_the_weights, 1e-5);
  EXPECT_GT(c.worst(out, spans), 1e-3);  // and the inputs were rounded indeed
}

TEST(Attention, in_fp16_rounds_the_inputs_of_both_products_only) {
  Case c({2, 1, 64}, 1, 90);
  const std::vector<AttentionSpan> spans = {{0, 90, 0, 0}};
  const std::vector<float> out = c.run(spans, Compute::fp16);
  Case rounded = c;
  for (auto* x : {&rounded.q, &rounded.k, &rounded.v}) {
    for (float& value : *x) value = Float16::to_float(Float16::nearest(value));
  }
  const double of_the_weights = rounded.worst(out, spans);  // an eighth of bf16's
  EXPECT_LT(of_the_weights, 5e-4);
  EXPECT_GT(of_the_weights, 1.25e-6);
  EXPECT_GT(c.worst(out, spans), 1.25e-4);
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
