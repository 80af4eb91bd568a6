// SPDX-License-Identifier: BSD-3-Clause
// Times of a lane's work as the device gives them.
#include "core/lane.hpp"
#include "tests/support/test_device.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace distzo2 {
namespace {

TEST(SpanClock, gives_spans_in_order_on_the_clock_of_the_host) {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  ComputeMemory& device = test_device_memory();
  const auto there = device.allocate("distzo2::test", bytes);
  const auto here = device.host().allocate("distzo2::test", bytes);
  std::vector<LaneSpan> spans;
  device.drain();
  device.take_spans(spans);
  spans.clear();
  const double start = trace_clock();
  for (std::uint32_t step = 0; step < 40; ++step) {  // more than the clock holds at a time
    for (std::int32_t unit = 0; unit < 100; ++unit) {
      device.begin_span({LaneKind::upload, unit, step, 0, 0, bytes});
      device.copy(LaneKind::upload, there.get(), here.get(), bytes);
      device.end_span(LaneKind::upload);
    }
    device.drain();
    device.take_spans(spans);
  }
  const double end = trace_clock();
  ASSERT_EQ(spans.size(), 4000U);
  double last = start - 1e-3;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].unit, static_cast<std::int32_t>(i % 100));
    EXPECT_GE(spans[i].begin, last);
    EXPECT_GT(spans[i].end, spans[i].begin);
    last = spans[i].end;
  }
  EXPECT_LE(last, end + 1e-3);
}

}  // namespace
}  // namespace distzo2
