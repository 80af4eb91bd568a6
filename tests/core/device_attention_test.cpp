// SPDX-License-Identifier: BSD-3-Clause
#include "core/device/attention.hpp"
#include "tests/support/attention_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

struct DeviceCase : AttentionCase {
  using AttentionCase::AttentionCase;
  DeviceCase(const AttentionCase& c) : AttentionCase(c) {}

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
  const std::vector<float> out = DeviceCase(AttentionCase::by_hand()).on_device({{0, 2, 0, 0}});
  EXPECT_FLOAT_EQ(out[0], 8.0F);
  EXPECT_FLOAT_EQ(out[1], 14.0F);
}

TEST(DeviceAttention, is_that_of_the_host_for_groups_prefixes_and_heads_of_any_size) {
  const AttentionShape shapes[] = {{4, 4, 16}, {6, 2, 10}, {3, 1, 128}, {2, 1, 160}, {1, 1, 256}};
  // A sequence of several tiles, two continuations of another one, a single token.
  const std::vector<AttentionSpan> spans{
      {0, 75, 0, 0}, {75, 116, 0, 0}, {116, 120, 75, 116}, {120, 155, 75, 116}, {155, 156, 0, 0}};
  for (const AttentionShape& shape : shapes) {
    DeviceCase c(shape, 2, 156);
    EXPECT_LT(largest_difference(c.on_device(spans), c.on_host(spans)), 3e-6) << shape.head_dim;
    // The same inputs are rounded; the weights, and so their rounding, differ in their last bits now and then.
    EXPECT_LT(largest_difference(c.on_device(spans, Compute::bf16), c.on_host(spans, Compute::bf16)), 8e-3);
    EXPECT_LT(largest_difference(c.on_device(spans, Compute::fp16), c.on_host(spans, Compute::fp16)), 1e-3);
  }
}

TEST(DeviceAttention, gives_a_row_the_same_bits_in_any_company) {
  DeviceCase c({4, 2, 16}, 1, 90);
  const std::vector<float> whole = c.on_device({{0, 90, 0, 0}});
  EXPECT_EQ(c.on_device({{0, 41, 0, 0}, {41, 90, 0, 41}}), whole);
}

}  // namespace
}  // namespace distzo2
