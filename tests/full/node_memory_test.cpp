// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a node hold together, by the kernel's proportional set sizes: a page that k processes map counts
// 1/k in each.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/full/record_result.hpp"
#include "tests/support/on_ranks.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

constexpr int ranks = 4;
constexpr const char* node_deck = R"(model: {family: opt, shape: opt-350m, weights: random, seed: 1}
data: {task: random tokens, sequence length: 16, train examples: 8}
zo: {steps: 1000000, batch: 4, learning rate: 1e-6, seed: 4}
parallel: {pertp: 2}
output: {folder: run}
)";

double pss_bytes(pid_t pid) {
  std::istringstream lines(text_of_file("/proc/" + std::to_string(pid) + "/smaps_rollup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("Pss:")) return 1024.0 * std::stod(line.substr(4));
  return 0;
}

/// The sum over the ranks of a run that has done a few steps: then all of its buffers have been used.
double bytes_of_ranks(const std::vector<std::string>& sets) {
  const TinyProject project;
  project.write("big.yaml", node_deck);
  ProgramOptions options = on_ranks(ranks);
  options.time_limit_s = 600;
  options.environment.emplace_back("OMP_NUM_THREADS=1");
  RunningProgram program(train_words("big.yaml", sets), project.here(options));
  const std::vector<pid_t> pids = pids_of_ranks(program, ranks);
  const auto steps = [&] {
    const std::string text = text_of_file(project.path("run/metrics.jsonl"));
    return std::count(text.begin(), text.end(), '\n');
  };
  while (program.running() && steps() < 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(program.running()) << program.wait().err;
  double sum = 0;
  for (const pid_t pid : pids) sum += pss_bytes(pid);
  program.send(SIGTERM);  // stops after a step
  program.wait();
  return sum;
}

TEST(NodeMemory, of_four_ranks_is_one_copy_of_the_model) {
  const TinyProject project;
  project.write("big.yaml", node_deck);
  const double copy = 4 * project.json({"plan", "big.yaml", "--json"}).at("parameters").get<double>();
  EXPECT_GT(copy, 1e9);
  // What a rank takes without a model of any size; activations of 64 tokens are not taken off.
  const double baseline = bytes_of_ranks({"model/shape=opt-tiny"});
  const double shared = bytes_of_ranks({}), apart = bytes_of_ranks({"parallel/slices=off"});
  const double copies = (shared - baseline) / copy, copies_apart = (apart - baseline) / copy;
  EXPECT_GT(copies, 1.0);
  EXPECT_LE(copies, 1.15);
  EXPECT_GT(copies_apart, ranks);
  record_result("memory of 4 ranks of a node, random opt-350m in fp32", {{"copy_bytes", copy},
                                                                         {"baseline_bytes", baseline},
                                                                         {"bytes_with_slices", shared},
                                                                         {"bytes_without", apart},
                                                                         {"copies_with_slices", copies},
                                                                         {"copies_bound", 1.15},
                                                                         {"copies_without", copies_apart}});
}

}  // namespace
}  // namespace distzo2
