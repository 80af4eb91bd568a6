// SPDX-License-Identifier: BSD-3-Clause
// The trajectories under results/smollm2_sst2 give theta of their runs again on any machine. Needs
// models/smollm2-135m-instruct (scripts/get_smollm2).
#include "tests/support/replayed_run.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace distzo2 {
namespace {

class Trajectories : public ::testing::TestWithParam<const char*> {};

TEST_P(Trajectories, replay_to_the_digest_of_their_run) {
  expect_replay_to_the_digest(std::filesystem::path("smollm2_sst2") / GetParam(), "models/smollm2-135m-instruct",
                              {.time_limit_s = 1800});
}

INSTANTIATE_TEST_SUITE_P(SmolLm2, Trajectories, ::testing::Values("seed1", "seed2", "seed3"));

}  // namespace
}  // namespace distzo2
