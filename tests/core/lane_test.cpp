// SPDX-License-Identifier: BSD-3-Clause
#include "core/lane.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

struct Log {
  std::vector<int> done;
  static void append(void* log, const LaneTask& task) { static_cast<Log*>(log)->done.push_back(task.unit); }
};

void fail(void*, const LaneTask&) {
  throw Error(ExitCode::file, "no");
}

TEST(Lane, runs_tasks_in_order_and_counts_what_they_moved) {
  Log log;
  Lane lane(LaneKind::read, 4);  // fewer than tasks: the giver waits
  for (int i = 0; i < 20; ++i) lane.run({Log::append, &log, i, -1, -1, 0, 7}, 3);
  lane.drain();
  std::vector<int> expected(20);
  for (int i = 0; i < 20; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(log.done, expected);
  std::vector<LaneSpan> spans;
  lane.take_spans(spans);
  ASSERT_EQ(spans.size(), 20U);
  EXPECT_TRUE(std::ranges::all_of(
      spans, [](const LaneSpan& s) { return s.lane == LaneKind::read && s.bytes == 7 && s.step == 3; }));
  EXPECT_TRUE(std::ranges::is_sorted(spans, {}, &LaneSpan::begin));
}

TEST(Lane, waits_for_events_of_another) {
  Log log;
  Event first, second;
  Lane a(LaneKind::upload, 8), b(LaneKind::download, 8);
  a.wait(second, 1);
  a.run({Log::append, &log, 1}, 0);
  a.record(first, 5);
  b.wait(first, 5);
  b.run({Log::append, &log, 2}, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(first.reached(), 0U);
  second.set(1);
  b.drain();
  EXPECT_EQ(first.reached(), 5U);
  EXPECT_EQ(log.done, (std::vector<int>{1, 2}));
}

TEST(Lane, does_nothing_more_after_a_failure_but_lets_nobody_wait) {
  Log log;
  Event passed;
  Lane lane(LaneKind::write, 8);
  lane.run({fail, nullptr, 0}, 0);
  lane.run({Log::append, &log, 1}, 0);
  lane.record(passed, 1);
  passed.wait(1);
  EXPECT_THROW(lane.drain(), Error);
  lane.run({Log::append, &log, 2}, 0);
  EXPECT_THROW(lane.drain(), Error);
  EXPECT_TRUE(log.done.empty());
}

}  // namespace
}  // namespace distzo2
