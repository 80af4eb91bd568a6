// SPDX-License-Identifier: BSD-3-Clause
// That what tests/core/device_waits_test.cpp counts of a GPU is counted.
#include "tests/support/host_waits.hpp"
#include "tests/support/test_device.hpp"

#include <gtest/gtest.h>

namespace distzo2 {
namespace {

TEST(HostWaits, are_counted) {
  const HostCalls before = host_calls();
  test_device_memory().drain();
  const auto memory = test_device_memory().allocate("distzo2::test", 4096);
  const HostCalls after = host_calls();
  EXPECT_GE(after.waits - before.waits, 3);  // three streams
  EXPECT_GE(after.allocations - before.allocations, 1);
}

}  // namespace
}  // namespace distzo2
