// SPDX-License-Identifier: BSD-3-Clause
// SmolLM2-135M on SST-2: needs models/smollm2-135m-instruct (scripts/get_smollm2) and the variable SST2, the folder of
// train.tsv and validation.tsv. Fine-tuning it is scripts/results_smollm2's.
#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/step_losses.hpp"
#include "core/sampler.hpp"
#include "core/step.hpp"
#include "io/hf_config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace distzo2 {
namespace {

const std::filesystem::path deck = std::filesystem::path(DISTZO2_SOURCE_DIR) / "inputs/smollm2_sst2.yaml";

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
}

TEST(SmolLm2, has_a_g_in_bf16_compute_within_0_35_of_its_rms) {
  Zero zero;
  constexpr std::uint32_t pairs = 32;
  const ZoSection& zo = zero.config.zo;
  const auto gradients = [&](Compute compute) {
    const auto engine = zero.engine(compute);
    Sampler sampler(zo.seed, static_cast<int>(zo.batch), static_cast<std::uint32_t>(zero.data.train->examples.size()));
    Perturbation p{zo.seed, 0, DirectionKind::gaussian, step_evaluations(Difference::central, 1, zo.epsilon)};
    const Layout layout{1, 1, PertpOrder::inner, 2, static_cast<int>(zo.batch)};
    std::vector<double> g;
    for (p.t = 0; p.t < pairs; ++p.t) {
      const ComputedLosses c = compute_losses(*engine, zero.data.train->examples, sampler.indices(p.t),
                                              share(layout, 0), p, zero.data.objective);
      g.push_back(
          projected_gradients(Difference::central, zo.epsilon, mean_losses(c.share.losses, c.share.counts)).front());
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
  RecordProperty("noise", std::to_string(noise));
  EXPECT_LE(noise, 0.35);
}

TEST(SmolLm2, holds_one_copy_of_the_parameters_and_its_export_is_what_was_trained) {
  const TemporaryFolder folder;
  const std::filesystem::path run = folder.path() / "run";
  TrainOptions options;
  options.deck = {deck,
                  {"zo/steps=3", "output/folder=" + run.string(), "data/dev examples=32", "zo/schedule=constant"}};
  ASSERT_EQ(train_command(options), ExitCode::done);
  const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
  const double stored = summary["stored_parameter_bytes"].get<double>();
  RecordProperty("peak over stored", std::to_string(summary["peak_host_bytes"].get<double>() / stored));

  const RunConfig config = read_run_config(deck, {"model/folder=" + (run / "final").string()});
  const LoadedData data = load_data(config, read_model_config(config.model.folder), Sets::evaluation);
  const auto engine = load_engine(config.model.folder, update_rule(config), Compute::fp32, false);
  const auto result = evaluate(*engine, data.test->examples, data.objective, every_example);
  EXPECT_EQ(result->accuracy, summary["final"]["accuracy"].get<double>());
  EXPECT_EQ(result->loss, summary["final"]["loss"].get<double>());
}

}  // namespace
}  // namespace distzo2
