// SPDX-License-Identifier: BSD-3-Clause
// The kept runs reach what is promised of them, and the documents give their numbers.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string>

#include "test_paths.hpp"
#include "tests/support/run_program.hpp"

#include <nlohmann/json.hpp>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The summaries of seeds 1 to 3.
std::array<json, 3> summaries(const std::string& folder) {
  std::array<json, 3> found;
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = json::parse(
        text_of_file(test_paths::sources / "results" / folder / ("seed" + std::to_string(i + 1)) / "summary.json"));
  return found;
}

double accuracy(const json& summary, const char* end) {
  return summary.at(end).at("accuracy").get<double>();
}

std::array<double, 3> sorted_accuracies(const std::array<json, 3>& runs) {
  std::array<double, 3> sorted{};
  std::ranges::transform(runs, sorted.begin(), [](const json& run) { return accuracy(run, "final"); });
  std::ranges::sort(sorted);
  return sorted;
}

/// The document says this, wherever its lines end.
void expect_said(const std::string& document, const std::string& words) {
  std::string text;
  for (const char c : text_of_file(test_paths::sources / document)) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank || (!text.empty() && text.back() != ' ')) text += blank ? ' ' : c;
  }
  EXPECT_NE(text.find(words), std::string::npos) << "\"" << words << "\" is not in " << document;
}

TEST(Results, of_the_demo_reach_their_bound_and_are_those_of_the_documents) {
  const std::array<json, 3> runs = summaries("quickstart");
  const std::array<double, 3> sorted = sorted_accuracies(runs);
  EXPECT_GE(sorted.front(), 0.90);
  const auto of = [&](std::size_t i) { return accuracy(runs[i], "final"); };
  expect_said("README.md",
              fmt::format("three seeds it comes to {:.3f}, {:.3f} and {:.3f} of 1,200", of(0), of(1), of(2)));
  expect_said("README.md", fmt::format("The demo: three seeds, {:.3f} to {:.3f}.", sorted.front(), sorted.back()));
  const auto loss = [&](const char* end) { return runs[0].at(end).at("loss").get<double>(); };
  expect_said("README.md", fmt::format("result accuracy {:.4f} -> {:.4f}, loss {:.4f} -> {:.4f}",
                                       accuracy(runs[0], "initial"), of(0), loss("initial"), loss("final")));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].at("final").at("examples"), 1200);
    expect_said("results/quickstart/README.md",
                fmt::format("| {} | {:.3f} to {:.3f} | {:.3f} to {:.3f} | {} |", i + 1, accuracy(runs[i], "initial"),
                            of(i), runs[i].at("initial").at("loss").get<double>(),
                            runs[i].at("final").at("loss").get<double>(), runs[i].at("best").at("step").get<int>()));
  }
}

TEST(Results, of_smollm2_reach_their_bounds_and_are_those_of_the_documents) {
  const std::array<json, 3> runs = summaries("smollm2_sst2");
  const std::array<double, 3> sorted = sorted_accuracies(runs);
  EXPECT_GE(sorted[0], 0.65);
  EXPECT_GE(sorted[1], 0.69);
  const double initial = accuracy(runs[0], "initial");
  const auto of = [&](std::size_t i) { return accuracy(runs[i], "final"); };
  const std::string change = fmt::format("{:.3f} to {:.3f}", initial, sorted[1]);
  expect_said("README.md", fmt::format("Accuracy goes from {} on the 872 validation sentences (median of three seeds: "
                                       "{:.3f}, {:.3f}, {:.3f})",
                                       change, of(0), of(1), of(2)));
  expect_said("README.md", "SmolLM2-135M on SST-2: " + change + ", the median of three seeds");
  expect_said("README.md", fmt::format("SmolLM2: three seeds, {:.3f} to {:.3f};", sorted[0], sorted[2]));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].at("final").at("examples"), 872);
    EXPECT_EQ(accuracy(runs[i], "initial"), initial);  // the base model's
    expect_said("results/smollm2_sst2/README.md", fmt::format("| {:.3f} to {:.3f} |", initial, of(i)));
  }
}

}  // namespace
}  // namespace distzo2
