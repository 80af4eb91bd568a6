// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/process_grid.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

TEST(ProcessGrid, has_a_group_for_each_dimension_whichever_is_inner) {
  Communicator& world = test_world();
  for (int pertp = 1; pertp <= world.size(); ++pertp) {
    if (world.size() % pertp != 0) continue;
    const int ddp = world.size() / pertp;
    for (const PertpOrder order : {PertpOrder::inner, PertpOrder::outer}) {
      ProcessGrid grid(world, {pertp, ddp, order, 2 * pertp, ddp + 1});
      EXPECT_EQ(grid.pertp().size(), pertp);
      EXPECT_EQ(grid.ddp().size(), ddp);
      EXPECT_EQ(grid.node().size(), world.size());
      EXPECT_EQ(grid.pertp().rank(), grid.place().pertp);
      EXPECT_EQ(grid.ddp().rank(), grid.place().ddp);
      EXPECT_EQ(grid.share().evaluations.size(), 2);
      // In a PertP group all have the same sequences, in a DDP group the same evaluations.
      for (const std::uint64_t begin : grid.pertp().gather(static_cast<std::uint64_t>(grid.share().sequences.begin)))
        EXPECT_EQ(begin, static_cast<std::uint64_t>(grid.share().sequences.begin));
      for (const std::uint64_t begin : grid.ddp().gather(static_cast<std::uint64_t>(grid.share().evaluations.begin)))
        EXPECT_EQ(begin, static_cast<std::uint64_t>(grid.share().evaluations.begin));
    }
  }
}

TEST(ProcessGrid, puts_neighbours_as_the_order_says) {
  Communicator& world = test_world();
  if (world.size() != 6) return;  // 2 x 3 is not square: a mix-up shows
  const auto members = [&](Communicator& group) {
    std::string text;
    for (const std::uint64_t rank : group.gather(static_cast<std::uint64_t>(world.rank())))
      text += std::to_string(rank);
    return text;
  };
  ProcessGrid inner(world, {2, 3, PertpOrder::inner, 2, 6});
  const std::vector<std::string> inner_pertp{"01", "01", "23", "23", "45", "45"};
  const std::vector<std::string> inner_ddp{"024", "135", "024", "135", "024", "135"};
  EXPECT_EQ(members(inner.pertp()), inner_pertp[static_cast<std::size_t>(world.rank())]);
  EXPECT_EQ(members(inner.ddp()), inner_ddp[static_cast<std::size_t>(world.rank())]);
  ProcessGrid outer(world, {2, 3, PertpOrder::outer, 2, 6});
  const std::vector<std::string> outer_pertp{"03", "14", "25", "03", "14", "25"};
  const std::vector<std::string> outer_ddp{"012", "012", "012", "345", "345", "345"};
  EXPECT_EQ(members(outer.pertp()), outer_pertp[static_cast<std::size_t>(world.rank())]);
  EXPECT_EQ(members(outer.ddp()), outer_ddp[static_cast<std::size_t>(world.rank())]);
}

TEST(ProcessGrid, refuses_a_layout_that_is_not_the_worlds_on_every_rank) {
  Communicator& world = test_world();
  try {
    const ProcessGrid grid(world, {2, world.size(), PertpOrder::inner, 2, 8});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    const std::string n = std::to_string(world.size()), twice = std::to_string(2 * world.size());
    EXPECT_NE(std::string(e.what()).find("pertp 2 x ddp " + n + " = " + twice + " ranks, but " + n), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace distzo2
