// SPDX-License-Identifier: BSD-3-Clause
// What a trajectory records is what design section 1 says, calculated again here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;
}

TEST(Method, forward_difference_of_three_directions_with_decay_and_warm_up) {
  const TinyProject project;
  project.trained({"zo/directions=3", "zo/difference=forward", "zo/objective=language model", "zo/weight decay=0.25",
                   "zo/warm-up=4", "zo/schedule=linear", "zo/epsilon=2e-3"});
  const json steps = project.json({"inspect", "run", "--json"}).at("steps");
  ASSERT_EQ(steps.size(), 12U);
  for (std::size_t t = 0; t < 12; ++t) {
    const json& step = steps.at(t);
    const double lr = t < 4 ? 1e-3 * static_cast<double>(t) / 4 : 1e-3 * (static_cast<double>(12 - t) / 8);
    EXPECT_DOUBLE_EQ(step.at("lr"), lr) << t;
    EXPECT_EQ(step.at("wd").get<float>(), 0.25F);
    const auto losses = step.at("losses").get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 4U);
    for (std::size_t k = 0; k < 3; ++k) {
      const double g = (losses[k + 1] - losses[0]) / 2e-3;
      EXPECT_EQ(step.at("g").at(k), g);
      EXPECT_EQ(step.at("g_raw").at(k), g);
      EXPECT_EQ(step.at("c").at(k).get<float>(), static_cast<float>(-step.at("lr").get<double>() * g / 3));
    }
  }
}

TEST(Method, central_difference_of_two_directions) {
  const TinyProject project;
  project.trained({"zo/directions=2"});
  const json run = project.json({"inspect", "run", "--json"});
  for (const json& step : run.at("steps")) {
    const auto losses = step.at("losses").get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 4U);
    for (std::size_t k = 0; k < 2; ++k) {
      const double g = (losses[2 * k] - losses[2 * k + 1]) / 2e-3;
      EXPECT_EQ(step.at("g").at(k), g);
      EXPECT_EQ(step.at("c").at(k).get<float>(), static_cast<float>(-1e-3 * g / 2));
    }
  }
}

TEST(Method, clip_limits_g_to_a_multiple_of_its_running_median_and_records_both) {
  const TinyProject project;
  project.trained({"zo/clip=1.25", "zo/steps=130", "zo/batch=2"});
  const json steps = project.json({"inspect", "run", "--json"}).at("steps");
  const std::vector<json> metrics = project.metrics();
  std::vector<double> sizes;
  int clipped = 0;
  for (const json& step : steps) {
    const double raw = step.at("g_raw").at(0);
    double limit = std::numeric_limits<double>::infinity();
    if (sizes.size() >= 10) {
      limit = 1.25 * median({sizes.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(100, sizes.size())),
                             sizes.end()});
    }
    const double g = std::clamp(raw, -limit, limit);
    EXPECT_EQ(step.at("g").at(0), g) << step;
    EXPECT_EQ(step.at("c").at(0).get<float>(), static_cast<float>(-1e-3 * g));
    const auto line = std::find_if(metrics.begin(), metrics.end(), [&](const json& m) {
      return !m.contains("evaluation") && m.at("step") == step.at("t");
    });
    ASSERT_NE(line, metrics.end());
    EXPECT_EQ(line->at("g").at(0), g);
    EXPECT_EQ(line->contains("g_raw"), g != raw);
    clipped += g != raw ? 1 : 0;
    sizes.push_back(std::abs(raw));
  }
  EXPECT_GT(clipped, 10);
  EXPECT_LT(clipped, 100);
}

TEST(Method, tokens_and_loss_of_a_step_stand_in_the_metrics) {
  const TinyProject project;
  project.trained({"zo/batch=40"});  // every training row once a step
  std::istringstream rows(text_of_file(project.path("train.tsv")));
  std::string row;
  std::getline(rows, row);
  std::size_t tokens = 0;  // one a character of the prompt, and of " no" and " yes" but for the last
  while (std::getline(rows, row)) {
    tokens += (row + ":").size() - std::string("\t0").size() + 2 + 3;
  }
  const json steps = project.json({"inspect", "run", "--json"}).at("steps");
  for (const json& line : project.metrics()) {
    if (line.contains("evaluation")) {
      continue;
    }
    const json& losses = steps.at(line.at("step").get<std::size_t>()).at("losses");
    EXPECT_EQ(line.at("loss"), (losses.at(0).get<double>() + losses.at(1).get<double>()) / 2);
    EXPECT_EQ(line.at("tokens"), tokens);
    EXPECT_GT(line.at("seconds").get<double>(), 0.0);
  }
}

}  // namespace
}  // namespace distzo2
