// SPDX-License-Identifier: BSD-3-Clause
// The trajectories under results/quickstart give theta of their runs again on any machine.
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace distzo2 {
namespace {

class Trajectories : public ::testing::TestWithParam<const char*> {};

TEST_P(Trajectories, replay_to_the_digest_of_their_run) {
  const TemporaryFolder folder;
  const std::filesystem::path source = DISTZO2_SOURCE_DIR, run = source / "results/quickstart" / GetParam();
  const ProgramResult result =
      run_program({"export", "--trajectory", (run / "trajectory.zoj").string(), "--model",
                   (source / "inputs/demo/model").string(), "--output", (folder.path() / "theta").string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("theta_digest"),
            nlohmann::json::parse(text_of_file(run / "summary.json")).at("theta_digest"));
}

INSTANTIATE_TEST_SUITE_P(Quickstart, Trajectories, ::testing::Values("seed1", "seed2", "seed3"));

}  // namespace
}  // namespace distzo2
