// SPDX-License-Identifier: BSD-3-Clause
#include "core/lane_trace.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace distzo2 {
namespace {

const LaneUse& lane(const Utilisation& u, LaneKind kind) {
  return u.lanes[static_cast<int>(kind)];
}

// read     |==1==|==2==|     |==3==|
// compute  |     |====1====|=2=|   |=3=|
//          0     2     4     6     8   9   10
const std::vector<LaneSpan> two_lanes = {{LaneKind::read, 1, 0, 0, 2, 200},    {LaneKind::read, 2, 0, 2, 4, 400},
                                         {LaneKind::read, 3, 0, 6, 8, 800},    {LaneKind::compute, 1, 0, 2, 5, 0},
                                         {LaneKind::compute, 2, 0, 5, 6.5, 0}, {LaneKind::compute, 3, 0, 8, 9, 0}};

TEST(LaneTrace, adds_busy_time_and_overlap_of_two_lanes) {
  const Utilisation u = utilisation(two_lanes, 0, 9, 3);
  EXPECT_DOUBLE_EQ(u.wall_s, 9);
  EXPECT_DOUBLE_EQ(lane(u, LaneKind::read).busy_s, 6);
  EXPECT_DOUBLE_EQ(lane(u, LaneKind::compute).busy_s, 5.5);
  EXPECT_DOUBLE_EQ(lane(u, LaneKind::write).busy_s, 0);
  EXPECT_EQ(lane(u, LaneKind::read).bytes, 1400U);
  // Busy 11.5 in 9: 2.5 was overlapped. The shorter lane's 5.5 could be, less 2 of the first read and 1 of the last
  // compute: 2.5.
  EXPECT_DOUBLE_EQ(u.overlap, 1.0);
  EXPECT_DOUBLE_EQ(utilisation(two_lanes, 0, 9, 0).overlap, 2.5 / 5.5);
}

TEST(LaneTrace, counts_of_a_span_what_lies_within_the_window) {
  const Utilisation u = utilisation(two_lanes, 1, 7, 0);
  EXPECT_DOUBLE_EQ(lane(u, LaneKind::read).busy_s, 1 + 2 + 1);
  EXPECT_DOUBLE_EQ(lane(u, LaneKind::compute).busy_s, 4.5);
  EXPECT_EQ(lane(u, LaneKind::read).bytes, 100U + 400 + 400);
  EXPECT_DOUBLE_EQ(u.overlap, 2.5 / 4.0);
}

TEST(LaneTrace, finds_none_where_lanes_wait_for_each_other) {
  const std::vector<LaneSpan> spans = {{LaneKind::upload, 0, 0, 0, 3, 0}, {LaneKind::compute, 0, 0, 3, 5, 0}};
  EXPECT_DOUBLE_EQ(utilisation(spans, 0, 5, 0).overlap, 0.0);
  EXPECT_DOUBLE_EQ(utilisation(spans, 0, 6, 0).overlap, 0.0);
}

TEST(LaneTrace, is_perfect_where_nothing_could_overlap) {
  EXPECT_DOUBLE_EQ(utilisation({}, 0, 5, 0).overlap, 1.0);
  const std::vector<LaneSpan> alone = {{LaneKind::compute, 0, 0, 1, 3, 0}};
  EXPECT_DOUBLE_EQ(utilisation(alone, 0, 5, 0).overlap, 1.0);
}

TEST(LaneTrace, names_every_lane) {
  std::string names;
  for (int i = 0; i < lane_kinds; ++i) names += std::string(name_of(static_cast<LaneKind>(i))) + " ";
  EXPECT_EQ(names, "read upload gather compute download write ");
}

}  // namespace
}  // namespace distzo2
