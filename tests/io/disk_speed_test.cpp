// SPDX-License-Identifier: BSD-3-Clause
#include "io/disk_speed.hpp"

#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

TEST(DiskSpeed, moves_bytes_in_the_share_that_was_asked_for_and_leaves_nothing) {
  const TemporaryFolder folder;
  for (const double share : {0.0, 0.75, 1.0}) {
    const DiskMix mix{.read_share = share, .request_bytes = 60000, .threads = 2};
    const DiskSpeed speed = measure_disk(folder.path(), mix, 1 << 20, 0.05);
    EXPECT_GE(speed.seconds, 0.05);
    const std::uint64_t requests = (speed.bytes_read + speed.bytes_written) / 61440;
    EXPECT_EQ((speed.bytes_read + speed.bytes_written) % 61440, 0U);
    EXPECT_EQ(speed.bytes_read / 61440, static_cast<std::uint64_t>(share * static_cast<double>(requests)));
    EXPECT_DOUBLE_EQ(speed.bytes_per_s() * speed.seconds, static_cast<double>(requests * 61440));
    EXPECT_TRUE(fs::is_empty(folder.path()));
  }
}

TEST(DiskSpeed, leaves_nothing_where_the_disk_is_too_small) {
  const TemporaryFolder folder;
  const std::string message = file_error([&] { measure_disk(folder.path(), {}, std::uint64_t{1} << 60, 0.1); });
  expect_contains(message, "are free on this file system; free some, or measure another folder");
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

}  // namespace
}  // namespace distzo2
