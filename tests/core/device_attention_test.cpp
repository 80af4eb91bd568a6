// SPDX-License-Identifier: BSD-3-Clause
#include "core/device/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace distzo2 {
namespace {

struct Case {
  AttentionShape shape;
  int evaluations, tokens;
  std::vector<float> q, k, v;
  HostExec exec;

  Case(AttentionShape s, int e, int n) : shape(s), evaluations(e), tokens(n) {
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    for (auto* x : {&q, &k, &v}) {
      const int heads = x == &q ? s.heads : s.kv_heads;
      x->resize(static_cast<std::size_t>(e * n * heads * s.head_dim));
      for (float& value : *x) value = normal(random);
    }
  }
  Rows rows(std::vector<float>& x, int heads) const {
    const int features = heads * shape.head_dim;
    return {x.data(), evaluations, tokens, features, features, static_cast<std::int64_t>(tokens) * features};
  }
  /// In place of q, as the stages do.
  std::vector<float> on_device(const std::vector<AttentionSpan>& spans, Compute compute = Compute::fp32) {
    std::vector<AttentionTile> tiles;
    attention_tiles(tiles, spans, shape, device_attention_rows(shape.head_dim));
    std::vector<float> out = q;
    const Rows y = rows(out, shape.heads);
    attend_rows<HostSpace>(exec, y, y, rows(k, shape.kv_heads), rows(v, shape.kv_heads), shape, spans.data(),
                           tiles.data(), static_cast<int>(tiles.size()), compute);
    return out;
  }
  std::vector<float> on_host(const std::vector<AttentionSpan>& spans, Compute compute = Compute::fp32) {
    std::vector<AttentionTile> tiles;
    attention_tiles(tiles, spans, shape);
    std::vector<float> scratch(attention_scratch(shape.head_dim) * static_cast<std::size_t>(exec.concurrency()));
    std::vector<float> out(q.size());
    attention(exec, rows(out, shape.heads), rows(q, shape.heads), rows(k, shape.kv_heads), rows(v, shape.kv_heads),
              shape, spans, tiles, compute, scratch.data());
    return out;
  }
};

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(d) ? d : std::max(largest, d);
  }
  return largest;
}

TEST(DeviceAttention, of_a_hand_example) {
  // Scores of token 1 are ln 3 * (0, 1): weights 1/4 and 3/4.
  Case c({1, 1, 1}, 1, 2);
  c.q = {5.0F, std::log(3.0F)};
  c.k = {0.0F, 1.0F};
  c.v = {8.0F, 16.0F};
  const std::vector<float> out = c.on_device({{0, 2, 0, 0}});
  EXPECT_FLOAT_EQ(out[0], 8.0F);
  EXPECT_FLOAT_EQ(out[1], 14.0F);
}

TEST(DeviceAttention, is_that_of_the_host_for_groups_prefixes_and_heads_of_any_size) {
  const AttentionShape shapes[] = {{4, 4, 16}, {6, 2, 10}, {3, 1, 128}, {2, 1, 160}, {1, 1, 256}};
  // A sequence of several tiles, two continuations of another one, a single token.
  const std::vector<AttentionSpan> spans{
      {0, 75, 0, 0}, {75, 116, 0, 0}, {116, 120, 75, 116}, {120, 155, 75, 116}, {155, 156, 0, 0}};
  for (const AttentionShape& shape : shapes) {
    Case c(shape, 2, 156);
    EXPECT_LT(largest_difference(c.on_device(spans), c.on_host(spans)), 3e-6) << shape.head_dim;
    // The same inputs are rounded; the weights, and so their rounding, differ in their last bits now and then.
    EXPECT_LT(largest_difference(c.on_device(spans, Compute::bf16), c.on_host(spans, Compute::bf16)), 8e-3);
    EXPECT_LT(largest_difference(c.on_device(spans, Compute::fp16), c.on_host(spans, Compute::fp16)), 1e-3);
  }
}

TEST(DeviceAttention, gives_a_row_the_same_bits_in_any_company) {
  Case c({4, 2, 16}, 1, 90);
  const std::vector<float> whole = c.on_device({{0, 90, 0, 0}});
  EXPECT_EQ(c.on_device({{0, 41, 0, 0}, {41, 90, 0, 41}}), whole);
}

}  // namespace
}  // namespace distzo2
