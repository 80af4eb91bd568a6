// SPDX-License-Identifier: BSD-3-Clause
// Models of random weights and random tokens: what there is to train and to measure without a download.
#include <gtest/gtest.h>

#include <cmath>

#include "app/loading.hpp"
#include "core/float16.hpp"
#include "core/model_shapes.hpp"
#include "core/random_weights.hpp"
#include "core/sampler.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* random_deck = R"(model: {family: opt, shape: opt-tiny, weights: random, seed: 1}
data: {task: random tokens, sequence length: 20, train examples: 6}
zo: {steps: 3, batch: 2, learning rate: 1e-3, seed: 4}
output: {folder: random}
)";

class RandomModel : public ::testing::Test {
protected:
  RandomModel() { project_.write("random.yaml", random_deck); }
  nlohmann::json trained(const std::vector<std::string>& sets) {
    const ProgramResult result = project_.run(train_words("random.yaml", sets));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return project_.summary(sets.empty() ? "random" : sets.front().substr(sets.front().find('=') + 1));
  }
  TinyProject project_;
};

TEST_F(RandomModel, trains_and_is_made_of_its_seed) {
  const nlohmann::json one = trained({}), again = trained({"output/folder=again"});
  const nlohmann::json other = trained({"output/folder=other", "model/seed=2"});
  EXPECT_EQ(one.at("steps"), 3);
  EXPECT_EQ(one.at("theta_digest"), again.at("theta_digest"));
  EXPECT_EQ(one.at("trajectory_digest"), again.at("trajectory_digest"));
  EXPECT_NE(one.at("theta_digest"), other.at("theta_digest"));
  // Tokens are uniform and weights small: the loss begins at the logarithm of the 512 entries.
  const std::vector<nlohmann::json> metrics = project_.metrics("random");
  EXPECT_NEAR(metrics.front().at("loss").get<double>(), std::log(512.0), 0.05);
  EXPECT_EQ(metrics.front().at("tokens"), 40);
  EXPECT_FALSE(fs::exists(project_.path("random/final")));
}

TEST(RandomWeights, are_imported_rounded_to_nearest_in_storage_precision) {
  const ModelConfig config = model_shape("opt-tiny");
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
    Engine engine(config, {1, DirectionKind::gaussian, storage, Rounding::stochastic, 1}, Compute::fp32);
    import_weights(engine.store(), random_weights(config, 13));
    const TensorTable& table = engine.store().table();
    for (int i = 0; i < std::ssize(table.tensors); ++i) {
      const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
      std::vector<float> values(static_cast<std::size_t>(t.size())), stored(values.size());
      random_values(t, 13, 0, values);
      engine.store().read(i, 0, stored);
      for (std::size_t e = 0; e < values.size(); e += 97) {
        const float x = values[e];
        const float expected = !t.matrix || storage == Storage::fp32 ? x
                               : storage == Storage::bf16            ? Bfloat16::to_float(Bfloat16::nearest(x))
                                                                     : Float16::to_float(Float16::nearest(x));
        ASSERT_EQ(stored[e], expected) << t.name;
      }
    }
  }
}

TEST_F(RandomModel, goes_on_with_a_run_and_refuses_another_seed) {
  trained({});
  EXPECT_EQ(project_.run(train_words("random.yaml", {"zo/steps=5"}, {"--resume", "auto"})).exit_code, 0);
  EXPECT_EQ(project_.summary("random").at("steps"), 5);
  const ProgramResult seed =
      project_.run(train_words("random.yaml", {"zo/steps=6", "model/seed=9"}, {"--resume", "auto"}));
  EXPECT_EQ(seed.exit_code, 2);
  EXPECT_NE(seed.err.find("model/seed: 9 was 1"), std::string::npos) << seed.err;
}

TEST_F(RandomModel, is_validated_but_neither_evaluated_nor_exported) {
  const ProgramResult good = project_.run({"validate", "random.yaml"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_NE(good.out.find("6 sequences of 20 random tokens"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("at most 40 tokens and 40 loss terms"), std::string::npos) << good.out;
  const ProgramResult evaluated = project_.run({"evaluate", "random.yaml"});
  EXPECT_EQ(evaluated.exit_code, 2);
  EXPECT_NE(evaluated.err.find("data/task: random tokens"), std::string::npos) << evaluated.err;
  trained({});
  const ProgramResult exported = project_.run({"export", "--trajectory", "random", "--output", "out"});
  EXPECT_EQ(exported.exit_code, 2);
  EXPECT_NE(exported.err.find("random weights (model/shape opt-tiny)"), std::string::npos) << exported.err;
  const ProgramResult too_long = project_.run({"validate", "random.yaml", "--set", "data/sequence length=2049"});
  EXPECT_EQ(too_long.exit_code, 2);
  EXPECT_NE(too_long.err.find("takes 2048 tokens at most"), std::string::npos) << too_long.err;
}

TEST_F(RandomModel, random_tokens_serve_a_model_from_a_folder) {
  const std::vector<std::string> sets{"output/folder=folder", "data/task=random tokens", "data/train=", "data/dev=",
                                      "data/test=",           "data/sequence length=12"};
  const ProgramResult result = project_.train(sets);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(project_.path("folder/final/model.safetensors")));
  const ProgramResult family = project_.train({"output/folder=family", "model/family=opt"});
  EXPECT_EQ(family.exit_code, 2);
  EXPECT_NE(family.err.find("holds a model of the family llama"), std::string::npos) << family.err;
}

TEST_F(RandomModel, a_sequence_is_the_next_part_of_an_endless_text) {
  const RunConfig config = read_run_config(project_.path("random.yaml"), {"data/split seed=3"});
  const ModelConfig model = model_config(config.model);
  const LoadedData data = load_data(config, model, Sets::all);
  const std::vector<std::int32_t> text = random_tokens(3, 0, 6 * 21, 512);
  ASSERT_EQ(data.train->examples.size(), 6u);
  const Example& last = data.train->examples.back();
  EXPECT_EQ(last.prompt, std::vector<std::int32_t>{text[105]});
  ASSERT_EQ(last.candidates.size(), 1u);
  EXPECT_EQ(last.candidates[0], std::vector<std::int32_t>(text.begin() + 106, text.end()));
}

}  // namespace
}  // namespace distzo2
