// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/agreement.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

/// What every rank is told, the same on all.
template <class Call>
std::string told(Call&& call) {
  std::string text;
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::rank_failed);
    text = e.what();
  }
  for (const std::string& other : test_world().gather(text)) EXPECT_EQ(other, text);
  return text;
}

TEST(Agreement, names_the_first_rank_that_differs_and_what_it_has) {
  Communicator& world = test_world();
  const std::string last = std::to_string(world.size() - 1);
  EXPECT_EQ(told([&] { check_same(world, "here", {{"zo/epsilon", "0.001"}, {"data", ""}}); }), "");
  if (world.size() == 1) return;
  const bool odd = world.rank() == world.size() - 1;
  EXPECT_EQ(told([&] {
              check_same(world, "node" + std::to_string(world.rank()),
                         {{"zo/epsilon", odd ? "0.01" : "0.001"}, {"zo/steps", "7"}, {"data", odd ? "b" : ""}});
            }),
            "rank " + last + " on node" + last +
                " has another deck, model, data or program than rank 0: zo/epsilon: 0.01, rank 0 has 0.001; data: b, "
                "rank 0 has ");
}

TEST(Agreement, names_the_first_block_of_a_replica_that_differs) {
  Communicator& world = test_world();
  const auto name_of = [](std::size_t block) { return "layer " + std::to_string(block); };
  int asked = 0;
  const auto equal = [&] {
    ++asked;
    return std::vector<std::uint64_t>{1, 2, 3};
  };
  EXPECT_EQ(told([&] { check_replicas(world, "here", 20, 6, equal, name_of); }), "");
  EXPECT_EQ(asked, 0);
  if (world.size() == 1) return;
  const bool odd = world.rank() == 1;
  const auto blocks = [&] { return std::vector<std::uint64_t>{1, 2, odd ? 13U : 3U, odd ? 7U : 4U}; };
  const std::string text = told([&] { check_replicas(world, "there", 20, odd ? 23 : 10, blocks, name_of); });
  EXPECT_EQ(text.find("rank 1 on there has other parameters than rank 0 after step 20, first in block 2 (layer 2)"), 0U)
      << text;
}

}  // namespace
}  // namespace distzo2
