// SPDX-License-Identifier: BSD-3-Clause
// Steps as they are predicted from a machine file that was measured minutes before, against steps as they are: all
// resident, through staging buffers, and from disk.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "test_paths.hpp"
#include "tests/full/record_result.hpp"
#include "tests/support/run_program.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

struct Way {
  const char* name;
  const char* deck;
  std::vector<std::string> sets;
};

Json json_of(std::vector<std::string> words, const TemporaryFolder& folder, const std::vector<std::string>& sets) {
  words.emplace_back("--json");
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const ProgramResult result = run_program(words, {.folder = folder.path(), .time_limit_s = 600});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

TEST(Prediction, is_within_a_tenth_or_the_spread_of_the_steps_measured) {
  const std::vector<Way> ways{
      {"resident", "resident.yaml", {}},
      {"staged", "staged.yaml", {}},
      {"disk", "resident.yaml", {"memory/host budget=420 MiB", "memory/scratch folder=."}},
  };
  const TemporaryFolder folder;
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    const std::string deck = (test_paths::sources / "inputs/streaming" / way.deck).string();
    std::vector<std::string> sets = way.sets;
    sets.emplace_back("zo/steps=10");
    // Measured again before each: a machine that others share changes its mood.
    const ProgramResult machine =
        run_program({"bench", "machine", "--output", "machine.json"}, {.folder = folder.path(), .time_limit_s = 600});
    ASSERT_EQ(machine.exit_code, 0) << machine.err;
    const Json plan = json_of({"plan", deck, "--machine", "machine.json"}, folder, sets);
    const Json speed = json_of({"bench", "speed", deck}, folder, sets);
    const Json& steps = speed.at("step_s");
    const double predicted = plan.at("prediction").at("step_s").get<double>(), mean = steps.at("mean").get<double>();
    const double spread = (steps.at("max").get<double>() - steps.at("min").get<double>()) / mean;
    const double error = predicted / mean - 1;
    record_result(std::string("prediction_") + way.name, {{"predicted_s", predicted},
                                                          {"measured_s", steps},
                                                          {"spread", spread},
                                                          {"error", error},
                                                          {"lanes_s", plan.at("prediction").at("lanes_s")},
                                                          {"lanes", speed.at("lanes")},
                                                          {"terms", plan.at("prediction").at("terms")}});
    EXPECT_LE(std::abs(error), std::max(0.10, spread)) << predicted << " s predicted, " << mean << " s measured";
  }
}

}  // namespace
}  // namespace distzo2
