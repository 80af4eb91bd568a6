// SPDX-License-Identifier: BSD-3-Clause
#include "core/write_back.hpp"

#include <gtest/gtest.h>

namespace distzo2 {
namespace {

TEST(WriteBack, a_step_takes_the_longer_of_computing_and_the_disk) {
  const WriteBackCost cost{.compute_s = 10, .replay_s = 2, .read_s = 8, .write_s = 8};
  EXPECT_EQ(step_seconds(cost, 1), 16);         // the disk: 8 + 8
  EXPECT_EQ(step_seconds(cost, 2), 12);         // the disk: 8 + 4; computing: 10 + 1
  EXPECT_EQ(step_seconds(cost, 4), 13);         // computing: 10 + 3
  EXPECT_EQ(cheapest_write_back(cost, 1), 3U);  // 12 as with 2, and fewer writes
}

TEST(WriteBack, a_disk_that_bounds_is_written_to_as_seldom_as_may_be) {
  EXPECT_EQ(cheapest_write_back({.compute_s = 1, .replay_s = 0.1, .read_s = 20, .write_s = 20}, 1), 8U);
}

TEST(WriteBack, where_computing_bounds_replay_may_cost_a_fiftieth) {
  // 100 + (N - 1) / 2 is at most 102 up to N = 5.
  EXPECT_EQ(cheapest_write_back({.compute_s = 100, .replay_s = 1, .read_s = 4, .write_s = 4}, 1), 5U);
  EXPECT_EQ(cheapest_write_back({.compute_s = 100, .replay_s = 10, .read_s = 4, .write_s = 4}, 1), 1U);
}

TEST(WriteBack, is_a_multiple_of_the_rounding_points) {
  const WriteBackCost disk{.compute_s = 1, .replay_s = 0, .read_s = 20, .write_s = 20};
  EXPECT_EQ(cheapest_write_back(disk, 3), 9U);
  EXPECT_EQ(cheapest_write_back(disk, 16), 16U);
  const WriteBackCost computing{.compute_s = 20, .replay_s = 20, .read_s = 1, .write_s = 1};
  EXPECT_EQ(cheapest_write_back(computing, 3), 3U);
}

}  // namespace
}  // namespace distzo2
