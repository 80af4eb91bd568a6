// SPDX-License-Identifier: BSD-3-Clause
// SmolLM2-135M on SST-2: needs models/smollm2-135m-instruct (scripts/get_smollm2) and the variable SST2, the folder of
// train.tsv and validation.tsv. Fine-tuning it is scripts/results_smollm2's.
#include "app/loading.hpp"
#include "app/step_losses.hpp"
#include "app/step_setup.hpp"
#include "io/hf_config.hpp"
#include "test_paths.hpp"
#include "tests/full/record_result.hpp"
#include "tests/support/run_program.hpp"
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace distzo2 {
namespace {

const std::filesystem::path deck = test_paths::sources / "inputs/smollm2_sst2.yaml";

bool every_example(std::size_t) {
  return true;
}

struct Zero {
  RunConfig config = read_run_config(deck);
  LoadedData data = load_data(config, read_model_config(config.model.folder), Sets::all);
  std::unique_ptr<Engine> engine(Compute compute) const {
    return load_engine(config.model.folder, update_rule(config), compute, false);
  }
};

TEST(SmolLm2, gets_450_of_872_sentences_right_zero_shot) {
  const Zero zero;
  const auto engine = zero.engine(Compute::fp32);
  const auto result = evaluate(*engine, zero.data.test->examples, zero.data.objective, every_example);
  ASSERT_EQ(result->examples, 872U);
  EXPECT_NEAR(result->accuracy * 872, 450, 2);  // measured with transformers
  record_result("SmolLM2 zero-shot", {{"right", std::lround(result->accuracy * 872)}, {"examples", 872}});
}

TEST(SmolLm2, has_a_g_in_bf16_compute_within_0_35_of_its_rms) {
  Zero zero;
  constexpr std::uint32_t pairs = 32;
  ZoSection zo = zero.config.zo;
  zo.kind = DirectionKind::gaussian;
  const auto gradients = [&](Compute compute) {
    const auto engine = zero.engine(compute);
    auto [rule, sampler, p] = step_setup(zo, zero.data.train->examples.size());
    std::vector<double> g;
    for (p.t = 0; p.t < pairs; ++p.t) {
      const ComputedLosses c = compute_losses(*engine, zero.data.train->examples, sampler.indices(p.t),
                                              share(layout_of_one(zero.config), 0), p, zero.data.objective);
      g.push_back(
          projected_gradients(rule.difference, rule.epsilon, mean_losses(c.share.losses, c.share.counts)).front());
    }
    return g;
  };
  const std::vector<double> exact = gradients(Compute::fp32), rounded = gradients(Compute::bf16);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    difference += std::pow(rounded[i] - exact[i], 2);
    size += std::pow(exact[i], 2);
  }
  const double noise = std::sqrt(difference / size);
  record_result("noise of g in bf16 compute", {{"rms_over_rms", noise}, {"bound", 0.35}, {"pairs", pairs}});
  EXPECT_LE(noise, 0.35);
}

/// The first rows of a file, header included.
void copy_rows(const std::filesystem::path& from, const std::filesystem::path& to, int rows) {
  std::ifstream in(from);
  std::ofstream out(to);
  std::string line;
  for (int i = 0; i <= rows && std::getline(in, line); ++i) out << line << '\n';
}

TEST(SmolLm2, holds_one_copy_of_the_parameters_and_its_activations) {
  const TemporaryFolder folder;
  copy_rows(read_run_config(deck).data.test, folder.path() / "test.tsv", 32);
  for (const std::string storage : {"fp32", "bf16"}) {
    const std::filesystem::path run = folder.path() / storage;
    const ProgramResult result =
        run_program(train_words(deck.string(),
                                {"zo/steps=3", "output/folder=" + run.string(), "precision/storage=" + storage,
                                 "data/dev examples=32", "data/test=" + (folder.path() / "test.tsv").string()},
                                {}),
                    {.time_limit_s = 3600});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
    const double stored = summary["stored_parameter_bytes"].get<double>();
    const double activations = summary["activation_bytes"].get<double>();
    const double peak = summary["peak_host_bytes"].get<double>();  // the process's own VmHWM
    const double bound = 1.25 * stored + activations + 100e6;
    nlohmann::ordered_json measured{{"peak_host_bytes", peak},
                                    {"peak_host_bytes_bound", bound},
                                    {"stored_parameter_bytes", stored},
                                    {"activation_bytes", activations}};
    expect_within(measured, "first_step", first_step_s(result.out), 3);
    record_result("SmolLM2 in " + storage, measured);
    EXPECT_NEAR(stored, 134515008.0 * (storage == "fp32" ? 4 : 2), 1e6);
    EXPECT_LE(peak, bound);
  }
}

TEST(SmolLm2, exports_what_was_trained) {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  const ProgramResult trained =
      run_program(train_words(deck.string(), {"zo/steps=3", "output/folder=" + run.string(), "data/dev examples=32"}),
                  {.time_limit_s = 3600});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
  const RunConfig config = read_run_config(deck, {"model/folder=" + (run / "final").string()});
  const LoadedData data = load_data(config, read_model_config(config.model.folder), Sets::evaluation);
  const auto engine = load_engine(config.model.folder, update_rule(config), Compute::fp32, false);
  const auto result = evaluate(*engine, data.test->examples, data.objective, every_example);
  EXPECT_EQ(result->accuracy, summary["final"]["accuracy"].get<double>());
  EXPECT_EQ(result->loss, summary["final"]["loss"].get<double>());
}

}  // namespace
}  // namespace distzo2
