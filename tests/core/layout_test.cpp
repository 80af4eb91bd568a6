// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

std::string refusal(const Layout& layout, int world) {
  try {
    check_layout(layout, world);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  return "";
}

void expect_share(const Share& s, int e0, int e1, int b0, int b1) {
  EXPECT_EQ(s.evaluations.begin, e0);
  EXPECT_EQ(s.evaluations.end, e1);
  EXPECT_EQ(s.sequences.begin, b0);
  EXPECT_EQ(s.sequences.end, b1);
}

TEST(Layout, puts_pertp_neighbours_next_to_each_other_inside) {
  const Layout layout{2, 3, PertpOrder::inner, 2, 8};  // 2 x 3 ranks, not square: a mix-up shows
  expect_share(share(layout, 0), 0, 1, 0, 3);
  expect_share(share(layout, 1), 1, 2, 0, 3);
  expect_share(share(layout, 2), 0, 1, 3, 6);
  expect_share(share(layout, 3), 1, 2, 3, 6);
  expect_share(share(layout, 4), 0, 1, 6, 8);
  expect_share(share(layout, 5), 1, 2, 6, 8);
}

TEST(Layout, puts_ddp_neighbours_next_to_each_other_outside) {
  const Layout layout{2, 3, PertpOrder::outer, 2, 8};
  expect_share(share(layout, 0), 0, 1, 0, 3);
  expect_share(share(layout, 1), 0, 1, 3, 6);
  expect_share(share(layout, 2), 0, 1, 6, 8);
  expect_share(share(layout, 3), 1, 2, 0, 3);
  expect_share(share(layout, 5), 1, 2, 6, 8);
}

TEST(Layout, covers_every_evaluation_of_every_sequence_once) {
  for (const PertpOrder order : {PertpOrder::inner, PertpOrder::outer}) {
    for (const int pertp : {1, 2, 3, 6}) {
      for (const int ddp : {1, 2, 4, 5}) {
        const Layout layout{pertp, ddp, order, 6, 5};
        check_layout(layout, pertp * ddp);
        std::vector<int> seen(6 * 5, 0);
        for (int rank = 0; rank < pertp * ddp; ++rank) {
          const Share s = share(layout, rank);
          EXPECT_GT(s.evaluations.size(), 0);
          EXPECT_GT(s.sequences.size(), 0);
          for (int e = s.evaluations.begin; e < s.evaluations.end; ++e) {
            for (int b = s.sequences.begin; b < s.sequences.end; ++b) {
              ++seen[static_cast<std::size_t>(e * 5 + b)];
            }
          }
        }
        EXPECT_EQ(seen, std::vector<int>(6 * 5, 1)) << pertp << " x " << ddp;
      }
    }
  }
}

TEST(Layout, states_the_arithmetic_of_what_does_not_fit) {
  EXPECT_EQ(refusal({2, 3, PertpOrder::inner, 2, 8}, 4),
            "layout: pertp 2 x ddp 3 = 6 ranks, but 4 were started; start 6 (mpirun -n, srun -n), or change "
            "parallel/pertp and parallel/ddp");
  EXPECT_EQ(refusal({2, 1, PertpOrder::inner, 2, 8}, 1),
            "layout: pertp 2 x ddp 1 = 2 ranks, but 1 was started; start 2 (mpirun -n, srun -n), or change "
            "parallel/pertp and parallel/ddp");
  EXPECT_EQ(refusal({4, 1, PertpOrder::inner, 6, 8}, 4),
            "layout: pertp 4 does not divide the step's 6 evaluations; pertp 3 does");
  EXPECT_NE(refusal({1, 9, PertpOrder::inner, 2, 8}, 9).find("ddp 9 exceeds the batch of 8"), std::string::npos);
  EXPECT_NE(refusal({0, 1, PertpOrder::inner, 2, 8}, 0).find("at least 1"), std::string::npos);
  EXPECT_NE(refusal({1, 1, PertpOrder::inner, 2, 0}, 1).find("at least 1"), std::string::npos);
  EXPECT_NE(refusal({1 << 20, 1 << 20, PertpOrder::inner, 1 << 20, 1 << 20}, 1).find("1099511627776 ranks"),
            std::string::npos);
  EXPECT_EQ(refusal({2, 8, PertpOrder::outer, 4, 8}, 16), "");
}

TEST(Layout, knows_no_other_ranks) {
  const Layout layout{2, 3, PertpOrder::inner, 2, 8};
  EXPECT_THROW(share(layout, 6), Error);
  EXPECT_THROW(share(layout, -1), Error);
}

}  // namespace
}  // namespace distzo2
