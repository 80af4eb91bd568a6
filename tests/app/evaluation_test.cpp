// SPDX-License-Identifier: BSD-3-Clause
// What evaluation and export see after N steps is theta_N, update N included.
#include <gtest/gtest.h>

#include <cmath>

#include "app/loading.hpp"
#include "core/random.hpp"
#include "io/hf_config.hpp"
#include "io/safetensors.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

using nlohmann::json;

json without_times(json evaluation) {
  for (const char* key :
       {"model", "task", "set", "seconds", "peak_host_bytes", "theta_digest", "arithmetic", "git_hash", "machine"})
    evaluation.erase(key);
  return evaluation;
}

/// The same deck without a test file: its evaluations are on the dev set.
std::string dev_deck(const TinyProject& project) {
  std::string text = text_of_file(project.path("deck.yaml"));
  const std::string line = "  test: test.tsv\n";
  project.write("dev.yaml", text.erase(text.find(line), line.size()));
  return "dev.yaml";
}

TEST(Evaluation, of_the_final_model_is_what_the_summary_has) {
  for (const char* model : {"llama_tied", "llama_untied", "opt"}) {
    SCOPED_TRACE(model);
    const TinyProject project(model);
    const json summary = project.trained();
    const json final = project.json({"evaluate", "deck.yaml", "--model", "run/final", "--json"});
    EXPECT_EQ(without_times(final), summary.at("final"));
    EXPECT_EQ(final.at("theta_digest"), summary.at("theta_digest"));
    const json base = project.json({"evaluate", "deck.yaml", "--json"});
    EXPECT_EQ(without_times(base), summary.at("initial"));
    EXPECT_NE(base.at("loss"), final.at("loss"));
  }
}

TEST(Evaluation, of_an_exported_step_is_what_the_run_measured_at_it) {
  const TinyProject project;
  project.trained();
  int compared = 0;
  for (const json& line : project.metrics()) {
    if (!line.contains("evaluation") || line.at("evaluation").at("set") != "dev") {
      continue;
    }
    const std::string step = line.at("step").dump();
    project.json({"export", "--trajectory", "run", "--step", step, "--output", "theta" + step, "--json"});
    json measured = line.at("evaluation");
    measured.erase("set");
    EXPECT_EQ(without_times(project.json({"evaluate", dev_deck(project), "--model", "theta" + step, "--json"})),
              measured)
        << "step " << step;
    ++compared;
  }
  EXPECT_EQ(compared, 4);  // steps 0, 5, 10 and 12
}

TEST(Evaluation, the_exported_theta_is_the_base_plus_the_recorded_updates) {
  const TinyProject project("llama_untied");
  project.trained({"zo/directions=2", "zo/weight decay=0.1", "zo/steps=3"});
  const json trajectory = project.json({"inspect", "run", "--json"});
  const TensorTable table = tensor_table(read_model_config(project.path("model")));
  const SafetensorsFile base(project.path("model/model.safetensors"));
  const SafetensorsFile final(project.path("run/final/model.safetensors"));
  for (const Tensor& tensor : table.tensors) {
    std::vector<float> theta(static_cast<std::size_t>(tensor.size()));
    base.read(tensor.name, 0, theta);
    std::vector<float> z(theta.size());
    for (const json& step : trajectory.at("steps")) {
      const auto lr = step.at("lr").get<double>();
      const auto decay = static_cast<float>(1.0 - lr * static_cast<double>(step.at("wd").get<float>()));
      for (std::uint32_t k = 1; k <= 2; ++k) {
        const auto c = static_cast<float>(-lr * step.at("g").at(k - 1).get<double>() / 2);
        EXPECT_EQ(c, step.at("c").at(k - 1).get<float>());
        for (std::size_t i = 0; i < z.size(); ++i) {
          theta[i] = k == 1 && tensor.matrix ? theta[i] * decay : theta[i];
          const auto at = static_cast<std::uint64_t>(tensor.first) + i;
          theta[i] = std::fma(c, gaussian_at(7, step.at("t").get<std::uint32_t>(), Stream::direction, k, at), theta[i]);
        }
      }
    }
    std::vector<float> written(theta.size());
    final.read(tensor.name, 0, written);
    EXPECT_EQ(written, theta) << tensor.name;
  }
}

TEST(Evaluation, the_best_model_is_the_one_with_the_best_dev_result) {
  const TinyProject project;
  const ProgramResult result = project.train({"zo/learning rate=3e-4", "output/evaluate every=1", "zo/steps=40"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  json best, step;
  for (const json& line : project.metrics()) {
    if (line.contains("evaluation") && line.at("evaluation").at("set") == "dev") {
      const json& e = line.at("evaluation");
      const auto order = [](const json& r) {
        return std::pair{r.at("accuracy").get<double>(), -r.at("loss").get<double>()};
      };
      if (best.is_null() || order(e) > order(best)) {
        best = e;
        step = line.at("step");
      }
    }
  }
  EXPECT_GT(step, 0);  // of this run
  json said = project.summary().at("best");
  EXPECT_EQ(said.at("step"), step);
  EXPECT_EQ(said.at("in_folder_best"), true);
  said.erase("step");
  said.erase("in_folder_best");
  EXPECT_EQ(said, best);
  EXPECT_NE(result.out.find("\nbest     step " + step.dump() + " on dev: accuracy "), std::string::npos) << result.out;
  best.erase("set");
  EXPECT_EQ(without_times(project.json({"evaluate", dev_deck(project), "--model", "run/best", "--json"})), best);
}

TEST(Evaluation, the_best_of_a_run_can_be_its_base_model_or_none) {
  const TinyProject project;
  EXPECT_EQ(project.trained({"zo/learning rate=0"}).at("best").at("step"), 0);  // the first of equals
  EXPECT_EQ(project.summary().at("best").at("in_folder_best"), false);
  EXPECT_FALSE(std::filesystem::exists(project.path("run/best")));
  EXPECT_TRUE(project.trained({"output/folder=b", "data/dev="}).at("best").is_null());
  const json best = project.trained({"output/folder=c", "output/write models=never"}).at("best");
  EXPECT_EQ(best.at("in_folder_best"), false);
}

TEST(Evaluation, a_16_bit_run_is_exported_in_its_storage_precision) {
  const TinyProject project;
  const json summary = project.trained({"precision/storage=bf16", "precision/rounding=stochastic"});
  const json final =
      project.json({"evaluate", "deck.yaml", "--model", "run/final", "--json", "--set", "precision/storage=bf16"});
  EXPECT_EQ(final.at("examples"), summary.at("final").at("examples"));
  EXPECT_NEAR(final.at("loss").get<double>(), summary.at("final").at("loss").get<double>(), 0.02);
  const json config = json::parse(text_of_file(project.path("run/final/config.json")));
  EXPECT_EQ(config.at("dtype"), "bfloat16");
  EXPECT_LT(std::filesystem::file_size(project.path("run/final/model.safetensors")),
            std::filesystem::file_size(project.path("model/model.safetensors")) * 6 / 10);
}

}  // namespace
}  // namespace distzo2
