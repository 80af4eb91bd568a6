// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a node may share: model files, budgets and plans that differ by rank, and two nodes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/ranks/deep_project.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/window_folder.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Sets = std::vector<std::string>;

class RanksNodePlan : public ::testing::Test {
protected:
  RanksNodePlan() : alone_(project_.trained(with(sets_, {"output/folder=alone"}))) {}

  /// A run of these options that has the bits of one rank; the rest of its line `slices`, and its summary.
  std::string slices(const Sets& more, const ProgramOptions& options) {
    const ProgramResult result = project_.train(with(sets_, more), {}, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    summary_ = project_.summary();
    expect_same_run(summary_, alone_);
    return line_of(result.out, "slices   ");
  }
  /// What a run with all parameters in the memory of two ranks that share them takes on each.
  std::uint64_t bytes_of_two() const { return host_bytes_with(project_, "deck.yaml", sets_, 50); }

  const Sets sets_{"zo/steps=3",
                   "zo/batch=6",
                   "memory/groups=on",
                   "memory/buffers=2",
                   "memory/write back every=1",
                   "output/evaluate every=0",
                   "output/write models=never"};
  const DeepProject project_{48};
  const json alone_;
  json summary_;
};

TEST_F(RanksNodePlan, gives_copies_to_ranks_that_read_different_files) {
  const DeepProject same(48);
  EXPECT_EQ(slices({}, on_ranks(3, on_rank(1, "cd '" + same.path().string() + "'"))),
            "none: its ranks read different model files, so each of the 3 ranks of a node has a copy of its own");
}

TEST_F(RanksNodePlan, gives_copies_to_ranks_that_plan_differently_and_says_what_differs) {
  // One thread more takes memory: where all fits on rank 0, a part does not on rank 1.
  const std::string line = slices({host_budget(bytes_of_two())},
                                  on_ranks(2, on_rank(1, "export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive")));
  EXPECT_TRUE(line.starts_with("none: what goes to disk would be 0 B on rank 0, ")) << line;
  EXPECT_TRUE(line.ends_with(" on rank 1, so each of the 2 ranks of a node has a copy of its own")) << line;
}

TEST_F(RanksNodePlan, keeps_within_the_least_budget_of_the_ranks_that_share) {
  // The batch system gives rank 1 the most MiB a node of which its part, less a tenth, does not hold all.
  const std::uint64_t mib = (bytes_of_two() * 2 * 10 / 9 - 1) >> 20;
  const std::string limit = "export SLURM_MEM_PER_NODE=" + std::to_string(mib);
  EXPECT_EQ(slices({}, on_ranks(2, on_rank(1, limit))), "the 2 ranks of a node have one copy of the parameters, in " +
                                                            window_folder() +
                                                            "; what is on disk is read once for all of them");
  EXPECT_GT(summary_.at("bytes_read"), 0);
}

TEST_F(RanksNodePlan, is_made_for_each_node_with_a_copy_and_a_store_of_its_own) {
  // Of the second node, rank 3 reads rank 2's files by other names, beside one that nobody reads.
  const DeepProject second(48);
  const TinyProject third;
  for (const char* name : {"model/config.json", "model/model.safetensors"}) {
    fs::remove(third.path(name));
    fs::create_hard_link(second.path(name), third.path(name));
  }
  third.write("model/notes.txt", "");
  const std::string folders =
      on_rank(2, "cd '" + second.path().string() + "'") + "; " + on_rank(3, "cd '" + third.path().string() + "'");
  const ProgramOptions options = on_ranks(4, folders, {"node1:2", "node2:2"});
  fs::create_directory(project_.path("shm"));  // windows of the library would have one name
  const std::string shared = project_.path("shm").string();
  EXPECT_EQ(slices({host_budget(bytes_of_two() - 300000), "memory/keep store=true",
                    "parallel/shared memory folder=" + shared},
                   options),
            "the 2 ranks of a node have one copy of the parameters, in " + shared +
                "; what is on disk is read once for all of them");
  EXPECT_TRUE(fs::exists(project_.path("run/store")));
  EXPECT_TRUE(fs::exists(project_.path("run/store-rank2")));
  for (const char* none : {"run/store-rank1", "run/store-rank3"}) EXPECT_FALSE(fs::exists(project_.path(none)));
}

}  // namespace
}  // namespace distzo2
