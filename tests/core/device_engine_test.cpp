// SPDX-License-Identifier: BSD-3-Clause
// The whole engine on the device's code, run by a GPU or by the host in its place, against the host's own.
#include "core/engine.hpp"
#include "core/step.hpp"
#include "tests/support/test_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

struct Model {
  const char* name;
  ModelConfig config;
};

std::vector<Model> tiny_models() {
  ModelConfig c;
  c.vocab = 190;
  c.hidden = c.embed_dim = 48;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 12;
  c.ffn = 70;
  c.max_positions = 64;
  std::vector<Model> models{{"llama", c}, {"qwen3", c}, {"opt", c}, {"opt 350m", c}};
  models[0].config.attention_bias = models[0].config.mlp_bias = true;
  models[1].config.family = FamilyKind::qwen3;
  models[1].config.tied_head = true;
  for (const std::size_t i : {2U, 3U}) {
    models[i].config.family = FamilyKind::opt;
    models[i].config.kv_heads = 4;
  }
  models[3].config.embed_dim = 20;
  models[3].config.norm_before = models[3].config.final_norm = false;
  models[3].config.tied_head = true;
  return models;
}

const BatchShape largest{4, 40, 40};

std::unique_ptr<Engine> make_engine(const ModelConfig& config, const UpdateRule& rule, Compute compute,
                                    bool on_device) {
  EngineDevice device;
  if (on_device) device = test_device(largest);
  auto engine = std::make_unique<Engine>(config, rule, compute, resident_placement(tensor_table(config), rule.storage),
                                         nullptr, UnitPipeline::Options{}, device);
  std::mt19937 random(2);
  const auto& tensors = engine->store().table().tensors;
  for (int i = 0; i < std::ssize(tensors); ++i) {
    const Tensor& t = tensors[static_cast<std::size_t>(i)];
    std::normal_distribution<float> normal(t.matrix ? 0.0F : 1.0F, 1.0F / std::sqrt(static_cast<float>(t.cols)));
    std::vector<float> values(static_cast<std::size_t>(t.size()));
    for (float& v : values) v = normal(random);
    engine->store().import_values(i, 0, values);
  }
  return engine;
}

/// Two sequences, and two continuations of the second.
PackedBatch some_batch(std::uint32_t seed) {
  PackedBatch batch;
  std::mt19937 random(seed);
  const auto add = [&](int length, int first_position, int prefix_begin, int prefix_end) {
    const int begin = batch.tokens();
    for (int i = 0; i < length; ++i) {
      batch.ids.push_back(static_cast<std::int32_t>(random() % 190));
      batch.positions.push_back(first_position + i);
      batch.terms.push_back({begin + i, static_cast<int>(random() % 190)});
    }
    batch.spans.push_back({begin, batch.tokens(), prefix_begin, prefix_end});
  };
  add(13, 0, 0, 0);
  add(11, 0, 0, 0);
  add(2, 11, 13, 24);
  add(5, 11, 13, 24);
  batch.terms.push_back({3, 7});  // a row that two terms read
  return batch;
}

Perturbation two_directions(const UpdateRule& rule, std::uint32_t t) {
  return {rule.seed, t, rule.kind, step_evaluations(Difference::central, 2, 1e-2)};
}

struct Differences {
  double largest = 0, rms = 0, scale = 0;
};

template <class T>
Differences compare(const std::vector<T>& a, const std::vector<T>& b) {
  Differences d;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    d.largest = std::isnan(x) ? x : std::max(d.largest, std::abs(x));
    d.rms += x * x / static_cast<double>(b.size());
    d.scale += static_cast<double>(b[i]) * static_cast<double>(b[i]) / static_cast<double>(b.size());
  }
  return {d.largest, std::sqrt(d.rms), std::sqrt(d.scale)};
}

// fp32: 1e-4. In 16 bits both round the same inputs, and what they round differs in its last bits: a few roundings go
// the other way, each half a unit of 2^-8 (2^-11). The tolerance is that of 16-bit compute itself against fp32
// (tests/app/models_golden_test.cpp), in the mean a quarter of it.
TEST(DeviceEngine, gives_the_logits_and_log_probabilities_of_the_host) {
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const PackedBatch batch = some_batch(1);
  const Perturbation p = two_directions(rule, 0);
  for (const Model& model : tiny_models())
    for (const Compute compute : {Compute::fp32, Compute::bf16, Compute::fp16}) {
      SCOPED_TRACE(std::string(model.name) + " " + name_of(compute));
      const auto host = make_engine(model.config, rule, compute, false);
      const auto device = make_engine(model.config, rule, compute, true);
      std::vector<float> a(4 * batch.terms.size() * 190), b = a;
      host->logits(batch, p, a);
      device->logits(batch, p, b);
      const Differences logits = compare(b, a);
      std::vector<double> c(4 * batch.terms.size()), d = c;
      host->forward(batch, p, c);
      device->forward(batch, p, d);
      const Differences log_prob = compare(d, c);
      const double units = compute == Compute::fp32 ? 1e-4 : compute == Compute::bf16 ? 0.4 : 0.05;
      EXPECT_LT(logits.largest, units);
      EXPECT_LT(log_prob.largest, units);
      EXPECT_LT(logits.rms, (compute == Compute::fp16 ? 6e-4 : 5e-3) * logits.scale);
      EXPECT_GT(logits.scale, 0.1);
      EXPECT_EQ(device->store().digest(), host->store().digest());
    }
}

TEST(DeviceEngine, leaves_the_theta_of_the_host_after_ten_steps_of_the_same_records) {
  for (const Model& model : tiny_models())
    for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
      const std::uint32_t round_every = storage == Storage::bf16 ? 3 : 1;
      SCOPED_TRACE(std::string(model.name) + " storage " + std::to_string(static_cast<int>(storage)));
      const UpdateRule rule{3, DirectionKind::gaussian, storage, Rounding::stochastic, round_every};
      const auto host = make_engine(model.config, rule, Compute::fp32, false);
      const auto device = make_engine(model.config, rule, Compute::fp32, true);
      for (std::uint32_t t = 0; t < 10; ++t) {
        const PackedBatch batch = some_batch(t);
        const Perturbation p = two_directions(rule, t);
        std::vector<double> losses(4 * batch.terms.size()), theirs = losses;
        host->forward(batch, p, losses);
        device->forward(batch, p, theirs);
        ASSERT_LT(compare(theirs, losses).largest, 1e-4);
        for (double& l : losses) l = -l;
        const std::vector<double> counts(batch.terms.size(), 1.0);
        const StepRecord record =
            make_step_record({Difference::central, 2, 1e-2}, t, 1e-2, 0.1F, losses, counts, 1e30).record;
        host->store().append(record);
        device->store().append(record);
        ASSERT_EQ(device->store().digest(), host->store().digest()) << "step " << t;
      }
    }
}

TEST(DeviceEngine, gives_a_sequence_the_same_bits_in_any_batch) {
  const UpdateRule rule;
  const PackedBatch both = some_batch(5);
  PackedBatch alone;
  alone.ids.assign(both.ids.begin(), both.ids.begin() + 13);
  alone.positions.assign(both.positions.begin(), both.positions.begin() + 13);
  alone.spans = {both.spans.front()};
  alone.terms.assign(both.terms.begin(), both.terms.begin() + 13);
  for (const Model& model : tiny_models()) {
    SCOPED_TRACE(model.name);
    const auto engine = make_engine(model.config, rule, Compute::bf16, true);
    std::vector<double> together(both.terms.size()), apart(alone.terms.size());
    engine->forward(both, clean_perturbation(), together);
    engine->forward(alone, clean_perturbation(), apart);
    together.resize(apart.size());
    EXPECT_EQ(together, apart);
  }
}

TEST(DeviceEngine, allocates_all_that_it_needs_before_the_first_pass) {
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  for (const Model& model : tiny_models()) {
    SCOPED_TRACE(model.name);
    const auto engine = make_engine(model.config, rule, Compute::bf16, true);
    const std::size_t before = engine->activation_bytes();
    const PackedBatch batch = some_batch(1);
    std::vector<double> log_prob(4 * batch.terms.size());
    engine->forward(batch, two_directions(rule, 0), log_prob);
    EXPECT_EQ(engine->activation_bytes(), before);
  }
}

}  // namespace
}  // namespace distzo2
