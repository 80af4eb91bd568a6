// SPDX-License-Identifier: BSD-3-Clause
// Exports and evaluations of a model larger than the memory that they may take.
#include <gtest/gtest.h>

#include "app/loading.hpp"
#include "core/engine.hpp"
#include "io/checkpoint_writer.hpp"
#include "io/hf_config.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A LLaMA of 202 MB in fp32, in folder `big` of the project, of random weights.
void make_big_model(const TinyProject& project) {
  json config = json::parse(text_of_file(project.path("model/config.json")));
  config["hidden_size"] = 1024;
  config["intermediate_size"] = 4096;
  config["num_attention_heads"] = config["num_key_value_heads"] = 16;
  config["head_dim"] = 64;
  config["num_hidden_layers"] = 3;
  project.write("shape/config.json", config.dump());
  fs::copy_file(project.path("model/tokenizer.json"), project.path("shape/tokenizer.json"));
  const ModelConfig model = read_model_config(project.path("shape"));
  const TensorTable table = tensor_table(model);
  const WeightSource weights = random_weights(model, 7);
  std::vector<TensorDeclaration> tensors;
  for (const Tensor& t : table.tensors)
    tensors.push_back({t.name, DType::f32, t.matrix ? std::vector{t.rows, t.cols} : std::vector{t.cols}});
  CheckpointWriter writer(project.path("big"), project.path("shape"), tensors);
  std::vector<float> values;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
    values.resize(static_cast<std::size_t>(t.size()));
    weights.read(i, 0, values);
    writer.write(t.name, values);
  }
  writer.finish();
}

TEST(BigModel, is_exported_and_evaluated_in_little_memory) {
  const TinyProject project;
  make_big_model(project);
  const std::vector<std::string> resident{"model/folder=big", "zo/steps=2", "output/evaluate every=0"};
  const json summary = project.trained(resident);

  // The run's own export comes from a resident model; the command's is byte for byte the same.
  const json exported = project.json({"export", "--trajectory", "run", "--output", "streamed", "--json"});
  EXPECT_EQ(exported.at("theta_digest"), summary.at("theta_digest"));
  EXPECT_EQ(text_of_file(project.path("streamed/model.safetensors")),
            text_of_file(project.path("run/final/model.safetensors")));
  EXPECT_EQ(text_of_file(project.path("streamed/config.json")), text_of_file(project.path("run/final/config.json")));

  const json verified = project.json({"verify", "run", "--json"});
  EXPECT_EQ(verified.at("digests").back().at("replayed"), summary.at("theta_digest"));

  const std::vector<std::string> evaluate{"evaluate", "deck.yaml", "--json", "--set", "model/folder=run/final"};
  std::vector<std::string> streamed = evaluate;
  streamed.insert(streamed.end(), {"--set", "memory/host budget=200 MiB", "--set", "memory/scratch folder=scratch"});
  const json whole = project.json(evaluate), part = project.json(streamed);
  for (const char* key : {"loss", "accuracy", "theta_digest"}) EXPECT_EQ(part.at(key), whole.at(key)) << key;
  EXPECT_EQ(whole.at("theta_digest"), summary.at("theta_digest"));
  EXPECT_TRUE(fs::is_empty(project.path("scratch")));

#ifndef __SANITIZE_ADDRESS__  // its shadow and what it holds back from reuse count too
  EXPECT_LE(exported.at("peak_host_bytes"), 128 * mib);
  EXPECT_LE(verified.at("peak_host_bytes"), 128 * mib);
  EXPECT_LE(part.at("peak_host_bytes"), 200 * mib);
  EXPECT_GE(whole.at("peak_host_bytes"), 202'000'000U);
#endif
}

}  // namespace
}  // namespace distzo2
