// SPDX-License-Identifier: BSD-3-Clause
#include "core/pieces.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

TEST(Pieces, are_each_done_once) {
  std::vector<int> done(1000);
  for_each_piece(done.size(), [&](std::size_t i) { done[i] += static_cast<int>(i) + 1; });
  for (std::size_t i = 0; i < done.size(); ++i) ASSERT_EQ(done[i], static_cast<int>(i) + 1);
  for_each_piece(0, [](std::size_t) { FAIL(); });
}

TEST(Pieces, report_the_first_failure_whichever_came_first) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    try {
      for_each_piece(100, [](std::size_t i) {
        if (i % 30 == 17) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "17");
    }
  }
}

}  // namespace
}  // namespace distzo2
