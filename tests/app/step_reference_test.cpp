// SPDX-License-Identifier: BSD-3-Clause
// Ten steps on a tiny model against a float64 reference in PyTorch that is given the same z
// (tests/golden/make_step_reference.py).
#include "core/engine.hpp"
#include "core/objective.hpp"
#include "core/packing.hpp"
#include "core/schedule.hpp"
#include "core/simd/kernels.hpp"
#include "core/step.hpp"
#include "test_paths.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

using nlohmann::json;

const std::filesystem::path folder = test_paths::sources / "tests/golden/steps";

const json& reference() {
  static const json parsed = json::parse(std::ifstream(folder / "reference.json"));
  return parsed;
}

std::vector<float> read_floats(const std::string& name) {
  std::vector<float> values(std::filesystem::file_size(folder / name) / sizeof(float));
  std::ifstream file(folder / name, std::ios::binary);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  EXPECT_TRUE(file.good()) << name;
  return values;
}

ModelConfig tiny_llama(bool tied) {
  const json& m = reference()["model"];
  ModelConfig c;
  c.family = FamilyKind::llama;
  c.architecture = "LlamaForCausalLM";
  c.vocab = m["vocab"];
  c.hidden = m["hidden"];
  c.layers = m["layers"];
  c.heads = m["heads"];
  c.kv_heads = m["kv_heads"];
  c.head_dim = m["head_dim"];
  c.ffn = m["ffn"];
  c.max_positions = 64;
  c.norm_eps = m["norm_eps"];
  c.rope.theta = m["rope_theta"];
  c.tied_head = tied;
  return c;
}

std::vector<Example> examples() {
  std::vector<Example> list;
  for (const json& e : reference()["examples"]) {
    list.push_back({e["prompt"].get<std::vector<std::int32_t>>(),
                    e["candidates"].get<std::vector<std::vector<std::int32_t>>>(), e["label"].get<int>()});
  }
  return list;
}

void import_weights(ParameterStore& store, const std::vector<float>& weights) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < store.table().tensors.size(); ++i) {
    const auto size = static_cast<std::size_t>(store.table().tensors[i].size());
    ASSERT_LE(at + size, weights.size());
    store.import_values(static_cast<int>(i), 0, std::span(weights).subspan(at, size));
    at += size;
  }
  ASSERT_EQ(at, weights.size());
}

/// One case of the reference, run by the program's own parts, with what is wanted of it.
struct Case {
  explicit Case(const json& c)
      : data(c),
        objective(c["objective"] == "classification" ? Objective::classification : Objective::language_model),
        kind(c["kind"] == "gaussian" ? DirectionKind::gaussian : DirectionKind::rademacher),
        seed(c["seed"].get<std::uint64_t>()),
        weight_decay(c["weight_decay"].get<float>()),
        engine(tiny_llama(c["tied"]), UpdateRule{.seed = seed, .kind = kind}, Compute::fp32) {
    rule.difference = c["difference"] == "central" ? Difference::central : Difference::forward;
    rule.directions = c["directions"];
    rule.epsilon = c["epsilon"];
    rate = {c["learning_rate"], c["schedule"] == "linear" ? Schedule::linear : Schedule::constant, 0,
            static_cast<std::uint32_t>(c["steps"].size())};
    import_weights(engine.store(), read_floats(c["tied"] ? "weights_tied.bin" : "weights_untied.bin"));
  }

  StepRecord step(std::uint32_t t, std::span<const Example> all) {
    const auto indices = data["steps"][t]["batch"].get<std::vector<std::uint32_t>>();
    const PackedExamples packed = pack_examples(all, indices, candidates_of(objective));
    const Perturbation p{seed, t, kind, step_evaluations(rule.difference, rule.directions, rule.epsilon)};
    const std::size_t terms = packed.batch.terms.size();
    std::vector<double> log_prob(terms * p.evaluations.size());
    engine.forward(packed.batch, p, log_prob);
    std::vector<double> losses;
    std::vector<double> counts(indices.size());
    for (std::size_t e = 0; e < p.evaluations.size(); ++e) {
      for (std::size_t b = 0; b < indices.size(); ++b) {
        losses.push_back(
            sequence_loss(objective, std::span(log_prob).subspan(e * terms, terms), packed.examples[b], counts[b]));
      }
    }
    StepOutcome outcome = make_step_record(rule, t, learning_rate(rate, t), weight_decay, losses, counts,
                                           std::numeric_limits<double>::infinity());
    EXPECT_TRUE(outcome.finite);
    engine.store().append(outcome.record);
    return outcome.record;
  }

  json data;
  Objective objective;
  DirectionKind kind;
  std::uint64_t seed;
  float weight_decay;
  StepRule rule;
  LearningRate rate;
  Engine engine;
};

void expect_record(const Case& c, const StepRecord& record, const json& wanted) {
  const double slack = c.rule.difference == Difference::forward ? 2.0 : 1.0;
  const auto losses = wanted["losses"].get<std::vector<double>>();
  const auto g = wanted["g"].get<std::vector<double>>();
  ASSERT_EQ(record.losses.size(), losses.size());
  ASSERT_EQ(record.g.size(), g.size());
  EXPECT_NEAR(record.lr, wanted["lr"].get<double>(), 1e-15);
  for (std::size_t e = 0; e < losses.size(); ++e) {
    EXPECT_NEAR(record.losses[e], losses[e], 2e-6 * losses[e]) << "step " << record.t << ", evaluation " << e;
  }
  for (std::size_t k = 0; k < g.size(); ++k) {
    const double bound = 2e-6 * losses[0] / c.rule.epsilon + 1e-3 * std::abs(g[k]);
    EXPECT_NEAR(record.g[k], g[k], slack * bound) << "step " << record.t << ", direction " << k + 1;
  }
}

/// The distance of this number's neighbours.
double ulp(float x) {
  const float size = std::abs(x);
  return static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity())) - static_cast<double>(size);
}

/// |theta - reference| <= sum over the steps of lr |dg| |z| / q, dg being the deviation of g found, plus 2 ulp a step.
void expect_theta(Case& c, const std::vector<StepRecord>& records) {
  const std::vector<float> wanted = read_floats("theta_" + c.data["name"].get<std::string>() + ".bin");
  const auto fill = c.kind == DirectionKind::gaussian ? simd_kernels().fill_gaussian : simd_kernels().fill_rademacher;
  std::size_t at = 0;
  double moved = 0.0;
  for (std::size_t i = 0; i < c.engine.store().table().tensors.size(); ++i) {
    const Tensor& tensor = c.engine.store().table().tensors[i];
    const auto size = static_cast<std::size_t>(tensor.size());
    std::vector<float> theta(size);
    std::vector<float> z(size);
    std::vector<double> allowed(size, 0.0);
    std::vector<double> scale(size, 0.0);  // how far the steps move theta
    c.engine.store().read(static_cast<int>(i), 0, theta);
    ASSERT_LE(at + size, wanted.size());
    for (const StepRecord& record : records) {
      const auto g = c.data["steps"][record.t]["g"].get<std::vector<double>>();
      for (std::size_t k = 0; k < g.size(); ++k) {
        fill(z.data(), c.seed, record.t, static_cast<std::uint32_t>(k + 1), static_cast<std::uint64_t>(tensor.first),
             size);
        const double share = record.lr / static_cast<double>(g.size());
        for (std::size_t j = 0; j < size; ++j) {
          allowed[j] += share * std::abs(record.g[k] - g[k]) * std::abs(z[j]);
          scale[j] += share * std::abs(g[k] * z[j]);
        }
      }
    }
    for (std::size_t j = 0; j < size; ++j) {
      const double ulps = 2.0 * ulp(wanted[at + j]) * static_cast<double>(records.size());
      ASSERT_NEAR(theta[j], wanted[at + j], allowed[j] + ulps) << tensor.name << ", element " << j;
      moved = std::max(moved, scale[j]);
    }
    at += size;
  }
  EXPECT_EQ(at, wanted.size());
  EXPECT_GT(moved, 1e-3) << "the steps must move theta by far more than the tolerance";
}

TEST(StepReference, covers_every_way_to_step) {
  std::vector<std::string> seen;
  for (const json& c : reference()["cases"]) {
    for (const char* key : {"objective", "difference", "kind", "schedule"}) seen.push_back(c[key]);
    seen.push_back(c["tied"] ? "tied" : "untied");
    seen.push_back(c["weight_decay"] > 0.0 ? "decay" : "no decay");
    seen.push_back("q " + std::to_string(c["directions"].get<int>()));
  }
  for (const char* way : {"language model", "classification", "central", "forward", "gaussian", "rademacher",
                          "constant", "linear", "tied", "untied", "decay", "no decay", "q 1", "q 3"}) {
    EXPECT_NE(std::find(seen.begin(), seen.end(), way), seen.end()) << way;
  }
}

TEST(StepReference, follows_ten_steps_in_float64) {
  const std::vector<Example> all = examples();
  ASSERT_EQ(reference()["cases"].size(), 8U);
  for (const json& data : reference()["cases"]) {
    SCOPED_TRACE(data["name"].get<std::string>());
    ASSERT_EQ(data["steps"].size(), 10U);
    Case c(data);
    std::vector<StepRecord> records;
    for (std::uint32_t t = 0; t < 10; ++t) {
      records.push_back(c.step(t, all));
      expect_record(c, records.back(), data["steps"][t]);
    }
    expect_theta(c, records);
  }
}

}  // namespace
}  // namespace distzo2
