// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints that ranks write together, and runs that go on from them on other ranks.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/ranks/deep_project.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/store_on_disk.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

class RanksCheckpoints : public ::testing::Test {
protected:
  RanksCheckpoints() {
    project_.write("disk.yaml",
                   "model: {shape: llama-tiny, weights: random, seed: 1}\n"
                   "data: {task: random tokens, sequence length: 16, train examples: 20}\n"
                   "zo: {steps: 14, batch: 4, epsilon: 1e-3, learning rate: 1e-2}\n"
                   "checkpoint: {every steps: 4}\n");
    const std::uint64_t bytes = host_bytes_with(project_, "disk.yaml", {"memory/groups=on"}, 45);
    shared_disk_ = {host_budget(bytes), "memory/groups=on"};
    disks_ = with(shared_disk_, {"parallel/slices=off"});
    run("whole", {}, 0);
    whole_ = project_.summary("whole");
  }
  std::string run(const std::string& folder, const Sets& sets, int ranks, int exit_code = 0) {
    return go_on(project_, "disk.yaml", folder, sets, ranks, exit_code);
  }
  /// A part of a run, and the rest of it in another way: the same bits, from the checkpoint of step 8.
  void expect_going_on(const Sets& sets, int ranks, const Sets& more, int on) {
    SCOPED_TRACE(std::to_string(ranks) + " -> " + std::to_string(on));
    run("run", with(sets, {"zo/steps=11", "memory/keep store=false"}), ranks);
    const std::string out = run("run", more, on);
    EXPECT_EQ(line_of(out, "resumed  "), "after step 11, from the checkpoint of step 8 and by replay of 3 records");
    expect_same_run(project_.summary("run"), whole_);
    fs::remove_all(project_.path("run"));
  }
  std::size_t parts(const std::string& checkpoint) const {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(project_.path(checkpoint)))
      n += entry.path().extension() == ".bin" ? 1 : 0;
    return n;
  }

  TinyProject project_;
  Sets shared_disk_, disks_;
  nlohmann::json whole_;
};

TEST_F(RanksCheckpoints, go_from_one_rank_to_several_and_back) {
  expect_going_on({}, 0, {}, 3);
  expect_going_on({}, 3, {}, 0);
  expect_going_on({"parallel/slices=off"}, 2, {"parallel/pertp=2"}, 2);
}

TEST_F(RanksCheckpoints, go_from_and_to_disks_that_ranks_share_or_not) {
  expect_going_on({}, 2, shared_disk_, 2);
  expect_going_on(shared_disk_, 2, {}, 3);
  expect_going_on(disks_, 2, shared_disk_, 2);
  expect_going_on(shared_disk_, 2, disks_, 2);
}

TEST_F(RanksCheckpoints, have_a_part_of_each_rank_and_one_where_one_reads_the_disk) {
  run("memory", {}, 3);
  EXPECT_EQ(parts("memory/checkpoints/step-12"), 3U);
  run("apart", {"parallel/slices=off"}, 2);
  EXPECT_EQ(parts("apart/checkpoints/step-12"), 2U);
  run("disk", shared_disk_, 2);
  EXPECT_EQ(parts("disk/checkpoints/step-12"), 1U);
  for (const char* folder : {"memory", "apart", "disk"}) expect_same_run(project_.summary(folder), whole_);
}

TEST_F(RanksCheckpoints, of_which_a_part_is_lost_come_to_the_same_bits) {
  run("run", {"zo/steps=11"}, 3);
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(project_.path("run/checkpoints/step-8"))) files.insert(entry.path());
  fs::remove(*files.begin());
  const std::string out = run("run", {}, 2);
  EXPECT_NE(out.find("cannot be opened"), std::string::npos) << out;
  expect_same_run(project_.summary("run"), whole_);
}

TEST_F(RanksCheckpoints, are_given_up_together_where_one_rank_cannot_write) {
  if (!can_preload) return;
  const std::string fault = on_rank(1, fault_in_shell("pwritev .step- 2 28"));
  const ProgramResult result = project_.run(train_words("disk.yaml", {"output/folder=run"}), on_ranks(2, fault));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("warning  no checkpoint of step 4: "), std::string::npos) << result.out;
  EXPECT_TRUE(fs::is_empty(project_.path("run/checkpoints")));
  expect_same_run(project_.summary("run"), whole_);
}

}  // namespace
}  // namespace distzo2
