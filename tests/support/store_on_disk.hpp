// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {

#ifdef __SANITIZE_ADDRESS__
constexpr bool can_preload = false;  // its own library has to be the first
#else
constexpr bool can_preload = true;
#endif

/// Options of a run whose disk fails as tests/support/fault_library.cpp says.
inline ProgramOptions with_fault(const std::string& fault) {
  return {.environment = {std::string("LD_PRELOAD=") + test_paths::faults, "DISTZO2_TEST_FAULT=" + fault}};
}

/// The same in a shell, before the program.
inline std::string fault_in_shell(const std::string& fault) {
  return std::string("export LD_PRELOAD=") + test_paths::faults + " DISTZO2_TEST_FAULT='" + fault + "'";
}

/// A tiny model from a folder, in too little memory by one byte and more: decoder blocks go to a store on disk.
class StoreOnDisk : public ::testing::Test {
protected:
  using Words = std::vector<std::string>;

  StoreOnDisk() {
    const Words plan{"plan", "deck.yaml", "--json", "--set", "memory/groups=on"};
    const auto bytes = project_.json(plan).at("host").at("bytes").get<std::uint64_t>();
    sets_ = {"memory/host budget=" + std::to_string(bytes - 1) + " B", "memory/groups=on", "memory/write back every=1",
             "memory/scratch folder=scratch", "output/evaluate every=0"};
    whole_ = project_.trained(with({"output/folder=whole"}));
    EXPECT_GT(whole_.at("bytes_written"), 0);
    model_ = text_of_file(project_.path("model/model.safetensors"));
  }
  ~StoreOnDisk() override { EXPECT_EQ(text_of_file(project_.path("model/model.safetensors")), model_); }

  Words with(const Words& more) const {
    Words sets = sets_;
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }
  /// Takes the first three steps of the run in the folder `run`, one a process, as its time is always over; the store
  /// then holds updates. `sets_` goes on with it, without data to evaluate on.
  void take_three_steps() {
    for (const char* set : {"data/dev=", "data/test="}) sets_.emplace_back(set);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(project_.train(with({"checkpoint/time limit=0.001 s"}), {"--resume", "auto"}).exit_code, 75);
  }
  /// The run goes on and ends as the one that was never disturbed.
  nlohmann::json expect_going_on(const nlohmann::json& undisturbed, const Words& more = {}) {
    const nlohmann::json resumed = project_.trained(with(more), {"--resume", "auto"});
    for (const char* key : {"theta_digest", "trajectory_digest", "steps"})
      EXPECT_EQ(resumed.at(key), undisturbed.at(key));
    return resumed;
  }
  /// A run of so many steps with all parameters in memory.
  nlohmann::json undisturbed_run(const std::string& steps) {
    return project_.trained({"zo/steps=" + steps, "output/folder=undisturbed", "output/evaluate every=0"});
  }

  TinyProject project_;
  Words sets_;
  nlohmann::json whole_;
  std::string model_;
};

}  // namespace distzo2
