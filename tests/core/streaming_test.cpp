// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine.hpp"
#include "core/error.hpp"
#include "core/step.hpp"
#include "tests/support/memory_storage.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

// Tiers, groups, buffers and write-back decide where the bytes are, and nothing else: losses and theta keep their bits.

constexpr std::size_t small_chunk = 1 << 14;  // so that small tensors are cut too

ModelConfig model(FamilyKind family, bool tied) {
  ModelConfig c;
  c.family = family;
  c.vocab = 300;
  c.hidden = c.embed_dim = 64;
  c.layers = 3;
  c.heads = c.kv_heads = 4;
  c.head_dim = 16;
  c.ffn = 200;
  c.max_positions = 64;
  c.tied_head = tied;
  return c;
}

struct Tiers {
  const char* name;
  Tier tier;
  bool staging, groups;
  int buffers;
  std::uint32_t write_back_every;
  int resident_blocks = 0;
};

Placement place(const ModelConfig& config, Storage storage, const Tiers& tiers) {
  const TensorTable table = tensor_table(config);
  Placement p = make_units(table, make_chunk_table(table, storage, small_chunk), tiers.groups);
  p.staging = tiers.staging;
  p.buffers = tiers.buffers;
  p.write_back_every = tiers.write_back_every;
  for (int u = 0; u < std::ssize(p.units); ++u) {
    Unit& unit = p.units[static_cast<std::size_t>(u)];
    const bool resident = unit.block > 0 && unit.block <= tiers.resident_blocks;
    if (!resident && may_stream(p, table, p.chunks, u)) unit.tier = tiers.tier;
  }
  size_buffers(p);
  return p;
}

struct Result {
  std::vector<double> losses;
  std::uint64_t theta = 0, replayed = 0;
  bool operator==(const Result&) const = default;
};

PackedBatch batch_of_step(std::uint32_t t) {
  PackedBatch batch;
  std::mt19937 random(t);
  for (const int length : {7, 12}) {
    const int begin = batch.tokens();
    for (int i = 0; i < length; ++i) {
      batch.ids.push_back(static_cast<std::int32_t>(random() % 300));
      batch.positions.push_back(i);
      if (i > 0) batch.terms.push_back({begin + i - 1, batch.ids.back()});
    }
    batch.spans.push_back({begin, batch.tokens(), 0, 0});
  }
  return batch;
}

Result run(const ModelConfig& config, const UpdateRule& rule, const Tiers& tiers) {
  const Placement placement = place(config, rule.storage, tiers);
  MemoryStorage disk(placement.chunks);
  Engine engine(config, rule, Compute::fp32, placement, &disk);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0F, 0.1F);
  for (int c = 0; c < std::ssize(placement.chunks.chunks); ++c) {
    std::vector<float> values(static_cast<std::size_t>(placement.chunks.chunks[static_cast<std::size_t>(c)].elements));
    for (float& v : values) v = normal(random);
    engine.store().import_chunk(c, values);
  }
  const StepRule step{Difference::central, 1, 1e-3};
  Result result;
  for (std::uint32_t t = 0; t < 11; ++t) {
    const PackedBatch batch = batch_of_step(t);
    const Perturbation p{rule.seed, t, rule.kind, step_evaluations(step.difference, 1, step.epsilon)};
    std::vector<double> losses(2 * batch.terms.size());
    engine.forward(batch, p, losses);
    if (t % 4 == 1) {  // an evaluation between steps
      std::vector<double> clean(batch.terms.size());
      engine.forward(batch, clean_perturbation(), clean);
      result.losses.insert(result.losses.end(), clean.begin(), clean.end());
    }
    result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    for (double& l : losses) l = -l;
    const std::vector<double> counts(batch.terms.size(), 1.0);
    engine.store().append(make_step_record(step, t, 1e-2, 0.1F, losses, counts, 1e30).record);
  }
  result.theta = engine.store().digest();
  engine.store().apply_pending();
  result.replayed = engine.store().digest();
  return result;
}

constexpr Tiers resident{"resident", Tier::resident, false, false, 2, 1};
const Tiers others[] = {{"resident in groups", Tier::resident, false, true, 2, 1},
                        {"staged", Tier::host, true, false, 2, 1},
                        {"staged, three buffers, written back every 8", Tier::host, true, false, 3, 8},
                        {"staged in groups", Tier::host, true, true, 2, 1},
                        {"disk", Tier::disk, false, false, 2, 1},
                        {"disk, written back every 8", Tier::disk, false, false, 3, 8},
                        {"disk in groups, written back every 8", Tier::disk, false, true, 2, 8},
                        {"disk, one block resident", Tier::disk, false, false, 2, 1, 1},
                        {"disk, staged", Tier::disk, true, false, 2, 1},
                        {"disk, staged in groups, written back every 8", Tier::disk, true, true, 3, 8}};

void expect_equal_bits(FamilyKind family, bool tied, const UpdateRule& rule) {
  const ModelConfig config = model(family, tied);
  const Result expected = run(config, rule, resident);
  EXPECT_EQ(expected.theta, expected.replayed);
  for (const Tiers& tiers : others) {
    const Result result = run(config, rule, tiers);
    EXPECT_EQ(result.losses, expected.losses) << tiers.name;
    EXPECT_EQ(result.theta, expected.theta) << tiers.name;
    EXPECT_EQ(result.replayed, expected.theta) << tiers.name;
  }
}

TEST(Streaming, gives_the_bits_of_a_resident_model_in_fp32) {
  expect_equal_bits(FamilyKind::llama, true, {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1});
  expect_equal_bits(FamilyKind::opt, false, {3, DirectionKind::rademacher, Storage::fp32, Rounding::stochastic, 1});
}

TEST(Streaming, gives_the_bits_of_a_resident_model_in_bf16) {
  expect_equal_bits(FamilyKind::llama, false, {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1});
  expect_equal_bits(FamilyKind::opt, true, {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 4});
}

TEST(Streaming, gives_the_bits_of_a_resident_model_in_fp16) {
  expect_equal_bits(FamilyKind::llama, true, {3, DirectionKind::gaussian, Storage::fp16, Rounding::nearest, 1});
  expect_equal_bits(FamilyKind::opt, false, {3, DirectionKind::gaussian, Storage::fp16, Rounding::stochastic, 8});
}

TEST(Streaming, reports_what_a_lane_could_not_do) {
  const ModelConfig config = model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const Placement placement = place(config, rule.storage, {"disk", Tier::disk, false, false, 2, 1});
  MemoryStorage disk(placement.chunks);
  Engine engine(config, rule, Compute::fp32, placement, &disk);
  const PackedBatch batch = batch_of_step(0);
  std::vector<double> losses(batch.terms.size());
  engine.store().append({0, 1e-3, 0.0F, {1e-3F}, {1.0}, {1.0}, {1.0, 1.0}});
  disk.fails_after = 1;
  EXPECT_THROW(
      {
        engine.forward(batch, clean_perturbation(), losses);
        engine.forward(batch, clean_perturbation(), losses);
      },
      Error);
}

TEST(Streaming, writes_a_unit_back_once_in_so_many_steps) {
  const ModelConfig config = model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  for (const std::uint32_t every : {1U, 4U}) {
    const Placement placement = place(config, rule.storage, {"disk", Tier::disk, false, false, 2, every});
    MemoryStorage disk(placement.chunks);
    Engine engine(config, rule, Compute::fp32, placement, &disk);
    const auto streamed = std::ranges::count(placement.units, Tier::disk, &Unit::tier);
    const PackedBatch batch = batch_of_step(0);
    std::vector<double> losses(batch.terms.size());
    for (std::uint32_t t = 0; t < 8; ++t) {
      engine.store().append({t, 1e-3, 0.0F, {1e-3F}, {1.0}, {1.0}, {1.0, 1.0}});
      engine.forward(batch, clean_perturbation(), losses);
    }
    engine.store().pipeline()->drain();
    EXPECT_EQ(disk.writes, streamed * 8 / every);
  }
}

}  // namespace
}  // namespace distzo2
