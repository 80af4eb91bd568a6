// SPDX-License-Identifier: BSD-3-Clause
// One copy of the parameters for the ranks of a node changes no bit, and a run says whether it has one.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/on_ranks.hpp"
#include "tests/support/store_on_disk.hpp"
#include "tests/support/tiny_project.hpp"
#include "tests/support/window_folder.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

/// The run of these options, one copy or a copy a rank as `line` says, gives the digests of one rank.
void expect_bits_of_one_rank(const TinyProject& project, const std::vector<std::string>& sets, const json& alone,
                             int ranks, const std::string& line) {
  SCOPED_TRACE(line);
  std::filesystem::remove_all(project.path("run"));
  const ProgramResult result = project.train(sets, {}, on_ranks(ranks));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(line_of(result.out, "slices"), "   " + line) << result.out;
  const json summary = project.summary();
  for (const char* key : {"theta_digest", "trajectory_digest", "initial", "final", "best"})
    EXPECT_EQ(summary.at(key), alone.at(key)) << key;
}

TEST(RanksSlices, change_no_bit_wherever_the_copy_lies) {
  const std::vector<std::vector<std::string>> precisions{
      {}, {"precision/storage=bf16", "precision/compute=bf16", "precision/round every=3"}};
  for (const std::vector<std::string>& precision : precisions) {
    const TinyProject project;
    const std::vector<std::string> sets =
        with(precision, {"zo/steps=14", "zo/batch=6", "output/evaluate every=3", "parallel/consistency check every=5"});
    const json alone = project.trained(with(sets, {"parallel/consistency check every=0"}));
    expect_bits_of_one_rank(project, with(sets, {"parallel/pertp=2"}), alone, 4,
                            "the 4 ranks of a node have one copy of the parameters, in " + window_folder());
    expect_bits_of_one_rank(project, with(sets, {"parallel/slices=off"}), alone, 3,
                            "none: parallel/slices is off, so each of the 3 ranks of a node has a copy of its own");
    for (const char* groups : {"memory/groups=off", "memory/groups=on"})
      expect_bits_of_one_rank(project, with(sets, {"memory/staging=always", groups}), alone, 3,
                              "the 3 ranks of a node have one copy of the parameters, in " + window_folder());
    expect_bits_of_one_rank(project, with(sets, {"memory/staging=always", "parallel/slices=off"}), alone, 2,
                            "none: parallel/slices is off, so each of the 2 ranks of a node has a copy of its own");
    const std::filesystem::path folder = project.path("in memory");
    std::filesystem::create_directory(folder);
    expect_bits_of_one_rank(project, with(sets, {"parallel/shared memory folder=in memory"}), alone, 3,
                            "the 3 ranks of a node have one copy of the parameters, in " + folder.string());
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
}

TEST(RanksSlices, go_on_from_a_run_of_one_rank) {
  const std::vector<std::string> sets{"zo/batch=6", "output/evaluate every=4", "precision/storage=bf16"};
  const TinyProject whole, project;
  const json expected = whole.trained(with(sets, {"zo/steps=16"}));
  const ProgramResult first = project.train(with(sets, {"zo/steps=7"}));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  std::filesystem::remove(project.path("run/summary.json"));
  const json resumed = project.trained(with(sets, {"zo/steps=16"}), {"--resume", "auto"}, on_ranks(3));
  for (const char* key : {"theta_digest", "trajectory_digest", "final"}) EXPECT_EQ(resumed.at(key), expected.at(key));
}

TEST(RanksSlices, that_no_memory_can_hold_are_refused_once) {
  const TinyProject project;
  const auto refused = [&](const ProgramResult& result, const std::string& what) {
    EXPECT_EQ(result.exit_code, 2);
    const std::size_t at = result.err.find(what);
    ASSERT_NE(at, std::string::npos) << result.err;
    EXPECT_EQ(result.err.find(what, at + 1), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(project.path("run")));
  };
  refused(project.train({"parallel/shared memory folder=nowhere"}, {}, on_ranks(3)),
          "parallel/shared memory folder: " + project.path("nowhere").string() + ": No such file or directory");
  refused(project.train({}, {}, on_ranks(2, "ulimit -f 200")),  // blocks of 512 bytes
          "the largest file that a rank may write (ulimit -f) has 0.1 MB");
}

TEST(RanksSlices, leave_no_file_where_a_rank_is_killed_as_the_file_takes_its_space) {
  if (!can_preload) return;
  const TinyProject project;
  std::filesystem::create_directory(project.path("in memory"));
  ProgramOptions options = on_ranks(2);
  const ProgramOptions killed = with_fault("posix_fallocate distzo2-shared 1 kill");
  options.environment.insert(options.environment.end(), killed.environment.begin(), killed.environment.end());
  EXPECT_NE(project.train({"parallel/shared memory folder=in memory"}, {}, options).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(project.path("run")));  // it came so far and no further
  EXPECT_TRUE(std::filesystem::is_empty(project.path("in memory")));
}

}  // namespace
}  // namespace distzo2
