// SPDX-License-Identifier: BSD-3-Clause
// What is measured on a GPU, as far as a program for CPUs can show it: the plan of ZO2's protocol, and its command.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "core/compute_memory.hpp"
#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using Json = nlohmann::json;

const std::string deck = (test_paths::sources / "inputs/gpu/zo2_protocol.yaml").string();

TEST(GpuDeck, is_planned_within_the_memory_that_zo2_takes) {
  const TinyProject project;
  // facts of ZO2's authors: OPT in fp16, one sequence of 2,048 tokens
  for (const auto& [shape, gigabytes] : {std::pair{"opt-1.3b", "3.75"}, {"opt-13b", "6.18"}, {"opt-30b", "8.86"}}) {
    SCOPED_TRACE(shape);
    const Json plan =
        project.json({"plan", deck, "--json", "--gpu", "80 GB", "--set", std::string("model/shape=") + shape, "--set",
                      std::string("memory/device budget=") + gigabytes + " GB", "--set", "memory/host budget=200 GB"});
    EXPECT_EQ(plan.at("machine"), "device");
    EXPECT_LE(plan.at("device").at("bytes").get<double>(), std::stod(gigabytes) * 1e9);
    EXPECT_EQ(plan.at("tiers").at("disk").at("bytes"), 0);
  }
}

TEST(GpuDeck, has_a_command_that_measures_the_last_half_of_its_steps) {
  const TinyProject project;
  const Json result =
      project.json({"bench", "speed", deck, "--json", "--set", "model/shape=opt-tiny", "--set", "zo/steps=6", "--set",
                    "data/sequence length=20", "--set", "memory/device budget=auto"});
  EXPECT_EQ(result.at("steps"), 6);
  EXPECT_EQ(result.at("tokens_per_step"), 20);
  EXPECT_GT(result.at("tokens_per_second"), 0);
  EXPECT_NEAR(result.at("tokens_per_second").get<double>() * result.at("step_s").at("mean").get<double>(), 20, 1e-9);
  EXPECT_LE(result.at("step_s").at("min"), result.at("step_s").at("mean"));
  EXPECT_GE(result.at("step_s").at("max"), result.at("step_s").at("mean"));
  EXPECT_NEAR(result.at("first_loss").get<double>(), std::log(512.0), 0.05);  // uniform tokens of 512 entries
  EXPECT_GT(result.at("lanes").at("upload").at("bytes"), 0);                  // staging: always
  EXPECT_EQ(result.at("machine").contains("device"), device_info().has_value());
}

}  // namespace
}  // namespace distzo2
