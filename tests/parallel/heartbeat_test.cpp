// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/heartbeat.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

/// What one rank's heartbeat said and did, in place of ending the job. Its `end` does not return, as the real one.
struct Ends {
  std::mutex mutex;
  std::vector<std::string> said;
  std::atomic<int> code{-1};
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex);
    return said;
  }
};

Heartbeat make_heartbeat(Ends& ends, const HeartbeatPace& pace) {
  std::vector<std::string> hosts;
  for (int r = 0; r < test_world().size(); ++r) hosts.push_back("node" + std::to_string(r));
  return {test_world().duplicate(), hosts,
          [&](const std::string& text) {
            const std::lock_guard lock(ends.mutex);
            ends.said.push_back(text);
          },
          [&](int code) {
            ends.code = code;
            std::this_thread::sleep_for(std::chrono::seconds(2));  // the job would be over by then
          },
          pace};
}

TEST(Heartbeat, of_ranks_that_all_fail_alike_says_it_once_and_lets_each_end) {
  Ends ends;
  {
    Heartbeat heartbeat = make_heartbeat(ends, {20, 2, 200, 500});
    EXPECT_EQ(heartbeat.fail(4, "step 7: a loss is not finite"), 4);
  }
  EXPECT_EQ(ends.code, -1);
  const bool speaks = test_world().size() > 1 && test_world().is_first();
  EXPECT_EQ(ends.lines(),
            speaks ? std::vector<std::string>{"step 7: a loss is not finite"} : std::vector<std::string>{});
}

TEST(Heartbeat, of_ranks_that_all_fail_but_not_alike_names_the_first) {
  if (test_world().size() == 1) return;
  Ends ends;
  {
    Heartbeat heartbeat = make_heartbeat(ends, {20, 2, 200, 500});
    EXPECT_EQ(heartbeat.fail(test_world().is_first() ? 3 : 2, "cause " + std::to_string(test_world().rank())), 3);
  }
  EXPECT_EQ(ends.lines(), test_world().is_first() ? std::vector<std::string>{"rank 0 on node0: cause 0"}
                                                  : std::vector<std::string>{});
}

TEST(Heartbeat, lets_ranks_wait_for_a_busy_one) {
  Ends ends;
  {
    Heartbeat heartbeat = make_heartbeat(ends, {10, 2, 500, 2});
    heartbeat.set_timeout(1.0);
    Communicator world = test_world().duplicate();
    world.observed_by(&heartbeat);
    if (world.is_first()) {
      heartbeat.begin_busy();
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      heartbeat.end_busy();
    }
    world.barrier();
  }
  EXPECT_EQ(ends.code, -1);
  EXPECT_TRUE(ends.lines().empty());
}

TEST(Heartbeat, does_not_miss_a_rank_that_took_its_leave) {
  Ends ends;
  {
    Heartbeat heartbeat = make_heartbeat(ends, {10, 2, 75, 2});
    test_world().barrier();
    if (test_world().rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  EXPECT_EQ(ends.code, -1);
  EXPECT_TRUE(ends.lines().empty());
}

}  // namespace
}  // namespace distzo2
