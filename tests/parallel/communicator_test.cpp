// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/communicator.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "core/error.hpp"
#include "parallel/launcher.hpp"
#include "parallel/mpi_handle.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

static_assert(!std::is_copy_constructible_v<Communicator> && !std::is_copy_assignable_v<Communicator>);
static_assert(std::is_nothrow_move_constructible_v<Communicator> && std::is_nothrow_move_assignable_v<Communicator>);

TEST(Communicator, has_the_ranks_that_were_started) {
  const std::optional<Launcher> launcher = find_launcher();
  EXPECT_EQ(test_world().size(), launcher ? launcher->ranks : 1);
  EXPECT_EQ(test_world().rank(), launcher ? launcher->rank : 0);
}

TEST(Communicator, without_mpi_is_one_rank) {
  Communicator alone;
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.rank(), 0);
  alone.barrier();
  EXPECT_EQ(alone.broadcast("text"), "text");
  EXPECT_EQ(alone.gather("text"), std::vector<std::string>{"text"});
  EXPECT_EQ(alone.gather(std::uint64_t{7}), std::vector<std::uint64_t>{7});
  EXPECT_EQ(alone.split(3, 1).size(), 1);
  EXPECT_EQ(alone.split_by_node().size(), 1);
  EXPECT_EQ(alone.duplicate().size(), 1);
}

TEST(Communicator, gathers_in_the_order_of_ranks_on_every_rank) {
  Communicator& world = test_world();
  const auto rank = static_cast<std::uint64_t>(world.rank());
  const std::vector<std::uint64_t> squares = world.gather(rank * rank);
  const std::vector<std::string> texts = world.gather(std::string(rank, 'a'));  // of rank 0: empty
  ASSERT_EQ(std::ssize(squares), world.size());
  ASSERT_EQ(std::ssize(texts), world.size());
  for (std::size_t r = 0; r < squares.size(); ++r) {
    EXPECT_EQ(squares[r], r * r);
    EXPECT_EQ(texts[r], std::string(r, 'a'));
  }
  std::vector<int> counts;
  for (int r = 0; r < world.size(); ++r) counts.push_back(r % 3);
  const std::vector<double> mine(rank % 3, 0.5 + static_cast<double>(rank));
  std::vector<double> expected;
  for (std::size_t r = 0; r < squares.size(); ++r) expected.insert(expected.end(), r % 3, 0.5 + static_cast<double>(r));
  EXPECT_EQ(world.gather(std::span<const double>(mine), counts), expected);
}

TEST(Communicator, broadcasts_from_any_rank) {
  Communicator& world = test_world();
  for (int root = 0; root < world.size(); ++root) {
    EXPECT_EQ(world.broadcast("from " + std::to_string(world.rank()), root), "from " + std::to_string(root));
    EXPECT_EQ(world.broadcast(static_cast<std::uint64_t>(world.rank()), root), static_cast<std::uint64_t>(root));
  }
  EXPECT_EQ(world.broadcast(world.is_first() ? std::string() : "other"), "");
}

TEST(Communicator, splits_by_colour_and_key) {
  Communicator& world = test_world();
  Communicator half = world.split(world.rank() % 2, -world.rank());
  const int even = (world.size() + 1) / 2;
  EXPECT_EQ(half.size(), world.rank() % 2 == 0 ? even : world.size() - even);
  EXPECT_EQ(half.rank(), half.size() - 1 - world.rank() / 2);  // the order is turned round
  EXPECT_EQ(world.split_by_node().size(), world.size());       // these tests run on one machine
  Communicator moved = std::move(half);
  EXPECT_EQ(moved.gather(std::uint64_t{1}).size(), static_cast<std::size_t>(moved.size()));
}

struct Count : WaitObserver {
  int arrivals = 0, leaves = 0;
  void arrived() override { ++arrivals; }
  void left() override { ++leaves; }
};

TEST(Communicator, tells_an_observer_of_its_waits) {
  Count count;
  Communicator world = test_world().duplicate();
  world.observed_by(&count);
  world.barrier();
  world.gather(std::uint64_t{1});
  EXPECT_EQ(count.arrivals, test_world().size() == 1 ? 0 : 2);
  EXPECT_EQ(count.leaves, count.arrivals);
}

TEST(Communicator, errors_of_mpi_have_its_text_and_the_exit_code_of_ranks) {
  EXPECT_NO_THROW(check_mpi(MPI_SUCCESS, "MPI_Any"));
  if (test_world().size() == 1) return;  // MPI is not up
  try {
    const MPI_Comm comm = test_world().mpi()->comm;
    const int absent = test_world().size();
    const char byte = 0;
    check_mpi(MPI_Send(&byte, 1, MPI_BYTE, absent, 0, comm), "MPI_Send");
    FAIL() << "sent to a rank that is not there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::rank_failed);
    EXPECT_EQ(std::string(e.what()).find("MPI_Send: "), 0U) << e.what();
    EXPECT_NE(std::string(e.what()).find("rank"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace distzo2
