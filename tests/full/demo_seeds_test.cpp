// SPDX-License-Identifier: BSD-3-Clause
// The demo learns from its deck, whatever the seed.
#include "core/clock.hpp"
#include "test_paths.hpp"
#include "tests/full/record_result.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

TEST(Demo, learns_from_guessing_with_three_seeds) {
  const TemporaryFolder runs;
  for (const std::string& seed : std::vector<std::string>{"1", "2", "3"}) {
    SCOPED_TRACE("seed " + seed);
    const std::filesystem::path run = runs.path() / seed;
    const std::string deck = (test_paths::sources / "inputs/quickstart.yaml").string();
    const auto start = Clock::now();
    const ProgramResult result =
        run_program(train_words(deck, {"zo/seed=" + seed, "output/folder=" + run.string()}), {.time_limit_s = 600});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    nlohmann::ordered_json measured;
    expect_within(measured, "training", seconds_since(start), 120);
    expect_within(measured, "first_step", first_step_s(result.out), 0.5);
    const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
    for (const char* when : {"initial", "final"}) measured[std::string(when) + "_accuracy"] = summary[when]["accuracy"];
    record_result("demo, seed " + seed, measured);
    for (const char* when : {"initial", "final"}) {
      const auto& confusion = summary[when]["confusion"];  // right * 2 + predicted
      EXPECT_GE(summary[when]["examples"].get<int>(), 1000);
      EXPECT_EQ(confusion[0].get<int>() + confusion[1].get<int>(), confusion[2].get<int>() + confusion[3].get<int>());
    }
    EXPECT_LE(summary["initial"]["accuracy"].get<double>(), 0.60);
    EXPECT_GE(summary["final"]["accuracy"].get<double>(), 0.90);
  }
}

}  // namespace
}  // namespace distzo2
