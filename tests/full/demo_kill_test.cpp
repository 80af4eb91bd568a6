// SPDX-License-Identifier: BSD-3-Clause
// The demo, killed again and again.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST(Demo, killed_at_random_moments_ends_with_the_digest_of_an_uninterrupted_run) {
  const TemporaryFolder folder;
  const std::string deck = (test_paths::sources / "inputs/quickstart.yaml").string();
  const auto words = [&](const std::string& run) {
    return train_words(deck,
                       {"output/folder=" + (folder.path() / run).string(), "zo/steps=100", "output/evaluate every=20",
                        "data/test=" + (test_paths::sources / "inputs/demo/dev.tsv").string(),
                        "data/dev=" + (test_paths::sources / "inputs/demo/test.tsv").string()},
                       {"--resume", "auto"});
  };
  const auto summary = [&](const std::string& run) {
    return json::parse(text_of_file(folder.path() / run / "summary.json"));
  };
  const ProgramOptions patient{.time_limit_s = 1800};
  ASSERT_EQ(run_program(words("whole"), patient).exit_code, 0);
  const json expected = summary("whole");

  // The moments: so many steps further than the run had come, and a little later, which may be in an evaluation or
  // while a model is written.
  std::mt19937 random(1);
  std::uniform_int_distribution<std::uintmax_t> steps(0, 20);
  std::uniform_int_distribution<int> milliseconds(0, 100);
  const fs::path trajectory = folder.path() / "killed/trajectory.zoj";
  int kills = 0;
  for (bool finished = false; !finished && kills < 50;) {
    const std::uintmax_t begun = fs::exists(trajectory) ? fs::file_size(trajectory) : 0;
    const std::uintmax_t target = begun + 64 * steps(random);
    RunningProgram program(words("killed"), patient);
    while (program.running() && (!fs::exists(trajectory) || fs::file_size(trajectory) < target)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds(random)));
    program.send(SIGKILL);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.err, "");
    finished = result.signal == 0;
    kills += finished ? 0 : 1;
  }
  EXPECT_GT(kills, 3);
  ASSERT_EQ(run_program(words("killed"), patient).exit_code, 0);
  for (const char* key : {"steps", "theta_digest", "trajectory_digest", "initial", "final"}) {
    EXPECT_EQ(summary("killed").at(key), expected.at(key)) << key;
  }
  for (const char* model : {"final", "best"}) {
    EXPECT_TRUE(text_of_file(folder.path() / "killed" / model / "model.safetensors") ==
                text_of_file(folder.path() / "whole" / model / "model.safetensors"))
        << model;
  }
  for (const auto& entry : fs::directory_iterator(folder.path() / "killed"))
    EXPECT_EQ(entry.path().filename().string().find(".partial"), std::string::npos) << entry.path();
}

}  // namespace
}  // namespace distzo2
