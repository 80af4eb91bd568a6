// SPDX-License-Identifier: BSD-3-Clause
// What `bench` prints hangs together; what it measures is the machine's.
#include <gtest/gtest.h>

#include <cmath>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

TEST(BenchStep, parts_are_most_of_the_step_and_noise_is_a_share) {
  const TinyProject project;  // for its folder: its own model is too small to tell its products apart
  const std::string deck = (test_paths::sources / "inputs/quickstart.yaml").string();
  const nlohmann::json result = project.json({"bench", "step", deck, "--repeats", "3", "--noise-pairs", "4", "--json"});
  const auto value = [&](const char* key) { return result.at(key).get<double>(); };
  for (const char* part : {"z_s", "gemm_s", "writes_and_softmax_s", "attention_s", "norm_s"})
    EXPECT_GT(value(part), 0) << part;
  EXPECT_GE(value("update_and_packing_s"), 0);  // what is left of making weights where z took longer alone
  EXPECT_LT(std::abs(value("rest_s")), value("step_s") / 2) << result;
  EXPECT_GT(value("gemm_share_of_alone"), 0);
  EXPECT_GT(value("bf16_noise_of_g"), 0);
  EXPECT_LT(value("bf16_noise_of_g"), 1);
}

}  // namespace
}  // namespace distzo2
