// SPDX-License-Identifier: BSD-3-Clause
// `distzo2 plan --machine`: what a step is predicted to take on a machine that a file describes.
#include <gtest/gtest.h>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path source = test_paths::sources;
const std::string resident = (source / "inputs/streaming/resident.yaml").string();
const std::string protocol = (source / "inputs/gpu/zo2_protocol.yaml").string();

Json number(double value) {
  return {{"value", value}, {"source", "assumption"}};
}

/// Only products take time, a second for 10^9 of them.
Json machine() {
  return {{"name", "a machine"},
          {"nodes", 1},
          {"devices", 0},
          {"cores", 1},
          {"host_memory_gb", number(64)},
          {"gemm_fp32_gflop_per_s", number(1)},
          {"attention_gflop_per_s", number(1e8)},
          {"z_gnormals_per_s", number(1e6)},
          {"memory_gb_per_s", number(1e6)}};
}

TEST(Prediction, of_a_resident_model_is_its_products_where_all_else_is_free) {
  const TinyProject project;
  project.write("machine.json", machine().dump());
  const Json plan = project.json({"plan", resident, "--machine", "machine.json", "--json"});
  const Json& p = plan.at("prediction");
  // OPT-125M: 12 blocks of 4 * 768^2 + 2 * 768 * 3072 elements, and a head of 50272 * 768; 2 evaluations of 256 tokens,
  // each with a loss term.
  const double elements = 12 * (4 * 768.0 * 768 + 2 * 768.0 * 3072) + 50272 * 768.0;
  EXPECT_NEAR(p.at("step_s").get<double>(), 2 * 2 * 256 * elements * 1e-9, 0.01);
  EXPECT_NEAR(p.at("tokens_per_second").get<double>(), 256 / p.at("step_s").get<double>(), 1e-9);
  EXPECT_EQ(p.at("longest"), "compute");
  EXPECT_EQ(p.at("prediction"), true);
  EXPECT_EQ(p.at("machine").at("z_gnormals_per_s").at("source"), "assumption");
  EXPECT_EQ(plan.at("host").at("source"), "memory/host budget");

  const ProgramResult text = project.run({"plan", resident, "--machine", "machine.json"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"prediction, not a measurement, on a machine", "pertp 1 x ddp 1: 1 rank on 1 node",
                           "products", "tokens/s (predicted)", "are from data sheets or assumed"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << " is not in: " << text.out;
}

TEST(Prediction, on_devices_gives_each_its_share) {
  const TinyProject project;
  const std::string file = (source / "inputs/machines/a100_nodes.json").string();
  const auto on = [&](const std::string& layout, const std::string& batch) {
    return project.json(
        {"plan", protocol, "--machine", file, "--layout", layout, "--json", "--set", "zo/batch=" + batch});
  };
  const Json one = on("1x1", "1"), four = on("2x2", "2");
  EXPECT_EQ(one.at("machine"), "device");
  EXPECT_EQ(one.at("prediction").at("slices"), false);
  EXPECT_EQ(four.at("prediction").at("slices"), true);
  const auto lane = [](const Json& plan, const char* name) {
    return plan.at("prediction").at("lanes_s").at(name).get<double>();
  };
  EXPECT_NEAR(lane(four, "upload"), lane(one, "upload") / 4, 1e-9);
  EXPECT_NEAR(lane(four, "write back"), lane(one, "write back") / 4, 1e-9);
  EXPECT_EQ(four.at("prediction").at("tokens_per_step"), 2 * 2048);
  EXPECT_EQ(on("2x8", "8").at("prediction").at("nodes"), 4);
}

TEST(Prediction, has_every_machine_that_comes_with_the_program) {
  const TinyProject project;
  int machines = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(source / "inputs/machines")) {
    SCOPED_TRACE(entry.path().filename().string());
    const Json plan = project.json({"plan", protocol, "--machine", entry.path().string(), "--json"});
    EXPECT_GT(plan.at("prediction").at("tokens_per_second"), 0);
    ++machines;
  }
  EXPECT_EQ(machines, 3);
}

TEST(Prediction, refuses_what_does_not_fit_by_name) {
  const TinyProject project;
  const auto path = project.write("machine.json", machine().dump());
  const auto plan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"plan", resident, "--machine", "machine.json"};
    words.insert(words.end(), more.begin(), more.end());
    return project.run(words);
  };
  for (const char* layout : {"2", "2x", "x2", "0x1", "2x2x2", "two"})
    expect_one_line(plan({"--layout", layout}), 2, {std::string("\"") + layout + "\" is no layout", "as 2x4"});
  expect_one_line(plan({"--layout", "1x2"}), 2, {"ddp 2 exceeds the batch of 1 sequences"});
  expect_one_line(plan({"--layout", "3x1"}), 2, {"pertp 3 does not divide the step's 2 evaluations"});
  expect_one_line(plan({"--set", "precision/compute=bf16"}), 3, {"machine.json", "\"gemm_bf16_gflop_per_s\""});
  expect_one_line(project.run({"plan", resident, "--machine", "none.json"}), 3, {"none.json: no such file"});
  expect_one_line(project.run({"plan", resident, "--layout", "1x1"}), 2, {"--layout requires --machine"});
  expect_one_line(plan({"--gpu", "80 GB"}), 2, {"--gpu excludes --machine"});
  const std::string nodes = (source / "inputs/machines/a100_one.json").string();
  expect_one_line(project.run({"plan", protocol, "--machine", nodes, "--layout", "2x1"}), 2,
                  {"pertp 2 x ddp 1 = 2 ranks, but the machine has 1 nodes x 1 = 1 devices"});
}

}  // namespace
}  // namespace distzo2
