// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/rank_place.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>

namespace distzo2 {
namespace {

TEST(RankPlace, tells_the_host_and_the_cores_that_this_process_is_bound_to) {
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const RankPlace place = this_place();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(place.host, host.data());
  EXPECT_EQ(place.cores, std::to_string(first));
  EXPECT_FALSE(place.nodes.empty());
}

}  // namespace
}  // namespace distzo2
