// SPDX-License-Identifier: BSD-3-Clause
// One deck gives the same bits whatever computes it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "app/loading.hpp"
#include "app/step_losses.hpp"
#include "core/sampler.hpp"
#include "core/simd/kernels.hpp"
#include "core/step.hpp"
#include "io/hf_config.hpp"
#include "io/trajectory_file.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void expect_other_run(const json& a, const json& b) {
  EXPECT_NE(a.at("theta_digest"), b.at("theta_digest"));
  EXPECT_NE(a.at("trajectory_digest"), b.at("trajectory_digest"));
}

/// What 16 bits can be used for, beside fp32 throughout.
const std::vector<std::vector<std::string>> precisions{
    {}, {"precision/compute=bf16"}, {"precision/storage=bf16"}, {"precision/compute=bf16", "precision/storage=bf16"}};

TEST(Reproducibility, a_run_has_the_same_bits_on_1_2_and_3_threads) {
  for (const char* model : {"llama_untied", "opt_350m", "qwen3"}) {
    const TinyProject project(model);
    std::vector<json> seen;
    for (const std::vector<std::string>& precision : precisions) {
      SCOPED_TRACE(testing::Message() << model << testing::PrintToString(precision));
      const auto run = [&](const std::string& folder, const std::string& threads, const std::string& variable) {
        fs::remove_all(project.path(folder));
        std::vector<std::string> sets{"zo/steps=6", "output/evaluate every=0", "output/folder=" + folder};
        if (!threads.empty()) sets.push_back("parallel/threads=" + threads);
        sets.insert(sets.end(), precision.begin(), precision.end());
        const std::string word = variable.empty() ? "OMP_NUM_THREADS" : "OMP_NUM_THREADS=" + variable;
        return project.trained(sets, {}, {.environment = {word, "OMP_WAIT_POLICY=passive"}});
      };
      const json one = run("run", "", "1");
      expect_same_run(one, run("on2", "", "2"));
      expect_same_run(one, run("on3", "", "3"));
      if (precision.empty()) expect_same_run(one, run("on3", "3", ""));
      for (const json& other : seen) expect_other_run(one, other);  // each precision is one of its own
      seen.push_back(one);
    }
  }
}

TEST(Reproducibility, a_trajectory_gives_the_same_theta_on_every_instruction_set) {
  const TinyProject project;
  project.trained(
      {"precision/storage=bf16", "precision/round every=3", "zo/directions=2", "zo/weight decay=0.1", "zo/steps=1"});
  // Losses may differ from machine to machine, so the records are given ones.
  const Trajectory run = read_trajectory(project.path("run/trajectory.zoj"));
  TrajectoryWriter given(project.path("given.zoj"), run.header, 0);
  for (std::uint32_t t = 0; t < 10; ++t) {
    StepRecord record = run.steps.front();
    record.t = t;
    record.lr = 1e-3;
    record.wd = 0.1F;
    record.c = {1e-3F * static_cast<float>(t), -2e-3F};
    given.append(record);
  }
  given.sync();
  std::vector<std::string> sets{"avx2"};
  if (simd_kernels_avx512() != nullptr) sets.emplace_back("avx512");
  for (const std::string& isa : sets) {
    const json exported =
        project.json({"export", "--trajectory", "given.zoj", "--model", "model", "--output", isa, "--json"},
                     {.environment = {"DISTZO2_ISA=" + isa}});
    EXPECT_EQ(exported.at("theta_digest"), "43161595a181c4da") << isa;  // the same on all
  }
}

TEST(Reproducibility, the_order_of_a_batch_changes_no_bit) {
  for (const char* name : {"llama_tied", "opt", "qwen3"}) {
    const TinyProject project(name);
    for (const std::vector<std::string>& precision : precisions) {
      const RunConfig config = read_run_config(project.path("deck.yaml"), precision);
      const ModelConfig model = read_model_config(config.model.folder);
      const LoadedData data = load_data(config, model, Sets::all);
      const auto engine = load_engine(config.model.folder, update_rule(config), config.precision.compute, false);
      const std::vector<Example>& examples = data.train->examples;
      constexpr std::uint32_t size = 13;
      std::vector<std::uint32_t> batch(size);
      std::iota(batch.begin(), batch.end(), 5U);
      const Perturbation step{7, 3, DirectionKind::gaussian, step_evaluations(Difference::central, 2, 1e-2)};
      const Share all = share({1, 1, PertpOrder::inner, 4, size}, 0);
      for (const Objective objective : {Objective::classification, Objective::language_model}) {
        SCOPED_TRACE(testing::Message() << name << testing::PrintToString(precision));
        const StepLosses straight = compute_losses(*engine, examples, batch, all, step, objective).share;
        std::vector<std::uint32_t> order(size);
        std::iota(order.begin(), order.end(), 0U);
        for (int i = 0; i < 5; ++i) {
          std::rotate(order.begin(), order.begin() + 4, order.end());
          std::swap(order[static_cast<std::size_t>(i)], order[9]);
          const StepLosses shuffled = compute_losses(*engine, examples, batch, all, step, objective, order).share;
          EXPECT_EQ(shuffled.losses, straight.losses);
          EXPECT_EQ(shuffled.counts, straight.counts);
        }
        EXPECT_NE(straight.losses.front(), straight.losses.back());
      }
    }
  }
}

TEST(Reproducibility, a_learning_rate_of_0_leaves_every_bit) {
  const TinyProject project;
  const auto digests = [&](const std::string& storage, const std::string& steps) {
    const std::string run = "output/folder=" + storage;
    const json summary =
        project.trained({run, "zo/learning rate=0", "zo/steps=" + steps, "precision/storage=" + storage,
                         "output/evaluate every=0", "zo/batch=1", "zo/weight decay=0.5"});
    const json trajectory = project.json({"inspect", storage, "--json"});
    EXPECT_EQ(trajectory.at("steps").size(), std::stoul(steps));
    return std::pair{summary.at("theta_digest"), trajectory.at("theta0_digest")};
  };
  for (const auto& [storage, steps] : {std::pair{"bf16", "1000"}, {"fp16", "100"}, {"fp32", "100"}}) {
    const auto [last, first] = digests(storage, steps);
    EXPECT_EQ(last, first) << storage;
  }
}

TEST(Reproducibility, a_seed_of_0_is_a_seed) {
  const TinyProject project;
  const json zero = project.trained({"output/folder=zero", "zo/seed=0"});
  expect_same_run(zero, project.trained({"output/folder=again", "zo/seed=0"}));
  expect_other_run(zero, project.trained({"output/folder=one", "zo/seed=1"}));
  expect_other_run(zero, project.trained({"output/folder=large", "zo/seed=18446744073709551615"}));
}

TEST(Reproducibility, the_split_seed_chooses_other_examples) {
  const TinyProject project;
  const json zero = project.trained({"output/folder=zero", "data/train examples=20"});
  expect_other_run(zero, project.trained({"output/folder=one", "data/train examples=20", "data/split seed=1"}));
}

}  // namespace
}  // namespace distzo2
