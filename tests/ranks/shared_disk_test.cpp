// SPDX-License-Identifier: BSD-3-Clause
// A store on disk that the ranks of a node share: evaluations in which a rank has no work, and a resume after kills.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/trajectory_file.hpp"
#include "tests/ranks/deep_project.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/store_on_disk.hpp"

namespace distzo2 {
namespace {

using Sets = std::vector<std::string>;

TEST(RanksSharedDisk, has_the_bits_of_one_rank_with_idle_ranks_and_after_kills) {
  const DeepProject project(40);
  std::string rows = "sentence\tlabel\n";
  for (int i = 0; i < 130; ++i)
    rows += "dev " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 13), 'x') + "\t" +
            std::to_string(i % 2) + "\n";
  project.write("dev.tsv", rows);
  const Sets sets{"zo/steps=6",
                  "zo/batch=6",
                  "output/evaluate every=4",
                  "output/write models=never",
                  "precision/storage=bf16",
                  "precision/compute=bf16",
                  "precision/round every=2",
                  "memory/write back every=2",
                  "memory/groups=off",
                  "memory/staging=always"};
  const nlohmann::json alone = project.trained(with(sets, {"output/folder=alone"}));
  // A third of the parameters is a rank's part: most of them have no room.
  const Sets on_disk = with(sets, {host_budget(host_bytes_with(project, "deck.yaml", sets, 25))});
  // The first rank dies as it imports, and then as it writes chunks of a block back: they have different versions.
  if (can_preload)
    for (const char* call : {"100", "403"}) {
      const std::string fault = fault_in_shell(std::string("pwritev chunks.bin ") + call + " kill");
      const ProgramResult killed = project.train(on_disk, resume, on_ranks(3, on_rank(0, fault)));
      EXPECT_NE(killed.exit_code, 0);
      EXPECT_TRUE(std::filesystem::exists(project.path("run/store/chunks.bin"))) << killed.err;
    }
  if (can_preload) {
    EXPECT_GT(read_trajectory(project.path("run/trajectory.zoj")).steps.size(), 0U);
  }
  const nlohmann::json ranks = project.trained(on_disk, resume, on_ranks(3));
  expect_same_run(ranks, alone);
  EXPECT_EQ(ranks.at("best"), alone.at("best"));
  EXPECT_GT(ranks.at("bytes_read"), 0);
  EXPECT_FALSE(std::filesystem::exists(project.path("run/store")));
}

}  // namespace
}  // namespace distzo2
