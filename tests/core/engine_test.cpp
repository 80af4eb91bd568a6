// SPDX-License-Identifier: BSD-3-Clause
// The two ways through a model, log-probabilities and whole logits, see one theta and leave one behind.
#include "core/engine.hpp"
#include "core/gemm.hpp"
#include "core/simd/kernels.hpp"
#include "tests/support/small_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

constexpr int vocab = 70;

std::unique_ptr<Engine> tiny_engine(Storage storage) {
  ModelConfig config;
  config.architecture = "LlamaForCausalLM";
  config.vocab = vocab;
  config.hidden = 32;
  config.layers = 1;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 16;
  config.ffn = 48;
  config.max_positions = 16;
  config.tied_head = true;
  auto engine = std::make_unique<Engine>(
      config, UpdateRule{3, DirectionKind::gaussian, storage, Rounding::stochastic, 1}, Compute::fp32);
  import_random(engine->store());
  engine->store().append({0, 1e-3, 0.0F, {1e-2F}, {1.0}, {1.0}, {1.0, 1.0}});
  return engine;
}

PackedBatch three_tokens() {
  PackedBatch batch;
  batch.ids = {5, 69, 0};
  batch.positions = {0, 1, 2};
  batch.spans = {{0, 3, 0, 0}};
  batch.terms = {{1, 64}, {2, 7}};
  return batch;
}

TEST(Engine, gives_log_probabilities_and_logits_of_one_theta_with_one_account_of_rounding) {
  for (const Storage storage : {Storage::fp32, Storage::bf16}) {
    const auto by_log_prob = tiny_engine(storage), by_logits = tiny_engine(storage);
    const PackedBatch batch = three_tokens();
    std::vector<double> log_prob(batch.terms.size());
    std::vector<float> logits(batch.terms.size() * vocab);
    by_log_prob->forward(batch, clean_perturbation(), log_prob);
    by_logits->logits(batch, clean_perturbation(), logits);
    for (std::size_t i = 0; i < batch.terms.size(); ++i) {
      double sum = 0;
      for (std::size_t v = 0; v < vocab; ++v) sum += std::exp(static_cast<double>(logits[i * vocab + v]));
      const double logit = static_cast<double>(logits[i * vocab + static_cast<std::size_t>(batch.terms[i].target)]);
      EXPECT_NEAR(log_prob[i], logit - std::log(sum), 1e-5);
    }
    const RoundingReport &a = by_log_prob->store().rounding(), &b = by_logits->store().rounding();
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.wanted_wanted, b.wanted_wanted);
    EXPECT_EQ(a.done_wanted, b.done_wanted);
    EXPECT_EQ(by_log_prob->store().digest(), by_logits->store().digest());
  }
}

TEST(Engine, names_what_its_arithmetic_depends_on) {
  const std::string fingerprint = tiny_engine(Storage::fp32)->arithmetic_fingerprint();
  EXPECT_TRUE(fingerprint.starts_with(gemm_fingerprint() + "; "));
  EXPECT_NE(fingerprint.find(std::string("; kernels ") + simd_kernels().name + ";"), std::string::npos);
}

}  // namespace
}  // namespace distzo2
