// SPDX-License-Identifier: BSD-3-Clause
// The trajectories under results/quickstart give theta of their runs again on any machine.
#include "tests/support/replayed_run.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace distzo2 {
namespace {

class Trajectories : public ::testing::TestWithParam<const char*> {};

TEST_P(Trajectories, replay_to_the_digest_of_their_run) {
  expect_replay_to_the_digest(std::filesystem::path("quickstart") / GetParam(), "inputs/demo/model");
}

INSTANTIATE_TEST_SUITE_P(Quickstart, Trajectories, ::testing::Values("seed1", "seed2", "seed3"));

}  // namespace
}  // namespace distzo2
