// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine.hpp"
#include "core/error.hpp"
#include "core/step.hpp"
#include "tests/support/memory_storage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <span>
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
  int delay_us = 0;  // of each transfer of the disk
  double link = 0;   // bytes a second
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

Result run(const ModelConfig& config, const UpdateRule& rule, const Tiers& tiers, Compute compute = Compute::fp32) {
  const Placement placement = place(config, rule.storage, tiers);
  MemoryStorage disk(placement.chunks);
  Engine engine(config, rule, compute, placement, &disk, {tiers.link});
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0F, 0.1F);
  for (int c = 0; c < std::ssize(placement.chunks.chunks); ++c) {
    std::vector<float> values(static_cast<std::size_t>(placement.chunks.chunks[static_cast<std::size_t>(c)].elements));
    for (float& v : values) v = normal(random);
    engine.store().import_chunk(c, values);
  }
  disk.delay = std::chrono::microseconds(tiers.delay_us);
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

void expect_equal_bits(FamilyKind family, bool tied, const UpdateRule& rule, std::span<const Tiers> places = others,
                       Compute compute = Compute::fp32) {
  const ModelConfig config = model(family, tied);
  const Result expected = run(config, rule, resident, compute);
  EXPECT_EQ(expected.theta, expected.replayed);
  for (const Tiers& tiers : places) {
    const Result result = run(config, rule, tiers, compute);
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

TEST(Streaming, gives_the_bits_of_a_resident_model_in_bf16_compute) {
  expect_equal_bits(FamilyKind::llama, false, {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1},
                    others, Compute::bf16);
}

TEST(Streaming, waits_for_slow_disks_and_links) {
  // A transfer takes far longer than a block's work: whatever does not wait is wrong.
  const Tiers slow[] = {{"slow disk", Tier::disk, false, false, 2, 1, 0, 3000},
                        {"slow disk, three buffers", Tier::disk, false, false, 3, 1, 0, 3000},
                        {"slow disk in groups, staged", Tier::disk, true, true, 2, 1, 0, 1000},
                        {"slow disk and link", Tier::disk, true, false, 3, 1, 0, 2000, 2e8},
                        {"slow link", Tier::host, true, false, 2, 1, 0, 0, 5e7},
                        {"slow link, three buffers, groups", Tier::host, true, true, 3, 1, 0, 0, 1e8}};
  expect_equal_bits(FamilyKind::llama, true, {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                    slow);
}

TEST(Streaming, goes_on_from_chunks_of_different_versions) {
  for (const auto& [storage, every] : {std::pair{Storage::fp32, 1U}, {Storage::bf16, 4U}}) {
    const ModelConfig config = model(FamilyKind::llama, true);
    const UpdateRule rule{3, DirectionKind::gaussian, storage, Rounding::stochastic, every};
    const Placement placement = place(config, storage, {"disk", Tier::disk, false, false, 2, every});
    const int chunks = static_cast<int>(placement.chunks.chunks.size());
    MemoryStorage disk(placement.chunks), earlier(placement.chunks);
    const PackedBatch batch = batch_of_step(0);
    std::vector<double> losses(batch.terms.size());
    std::vector<StepRecord> records;
    for (std::uint32_t t = 0; t < 10; ++t) records.push_back({t, 1e-3, 0.1F, {1e-2F}, {1.0}, {1.0}, {1.0, 1.0}});
    std::uint64_t expected = 0;
    {
      Engine engine(config, rule, Compute::fp32, placement, &disk);
      for (const StepRecord& r : records) {
        if (r.t == 5) {
          engine.store().pipeline()->drain();
          for (int c = 0; c < chunks; ++c) earlier.put(c, disk);
        }
        engine.store().append(r);
        engine.forward(batch, clean_perturbation(), losses);
      }
      expected = engine.store().digest();
    }
    // A crash: every second chunk is as it was at step 5.
    for (int c = 0; c < chunks; c += 2) disk.put(c, earlier);
    Engine resumed(config, rule, Compute::fp32, placement, &disk);
    for (const StepRecord& r : records) resumed.store().append(r);
    // What is in memory begins anew from theta_0, which is all zeros here, as on the disk.
    resumed.store().level_versions();
    EXPECT_EQ(resumed.store().digest(), expected);
    resumed.store().apply_pending();
    EXPECT_EQ(resumed.store().digest(), expected);
  }
}

TEST(Streaming, does_not_read_chunks_of_different_versions_as_one) {
  const ModelConfig config = model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const Placement placement = place(config, rule.storage, {"disk", Tier::disk, false, false, 2, 1});
  MemoryStorage disk(placement.chunks);
  const Unit& unit = *std::ranges::find(placement.units, Tier::disk, &Unit::tier);
  ASSERT_GT(unit.chunk_end - unit.chunk_begin, 1);
  std::vector<std::byte> bytes(unit.bytes);
  disk.write(unit.chunk_begin, unit.chunk_begin + 1, bytes.data(), 1);
  Engine engine(config, rule, Compute::fp32, placement, &disk);
  engine.store().append({0, 1e-3, 0.0F, {1e-3F}, {1.0}, {1.0}, {1.0, 1.0}});
  EXPECT_THROW(engine.store().apply_pending(), Error);
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
  disk.writes_left = 1;
  EXPECT_THROW(
      {
        engine.forward(batch, clean_perturbation(), losses);
        engine.forward(batch, clean_perturbation(), losses);
      },
      Error);
  EXPECT_THROW(engine.forward(batch, clean_perturbation(), losses), Error);  // and never goes on
  EXPECT_THROW(engine.store().digest(), Error);

  MemoryStorage lost(placement.chunks);
  Engine reader(config, rule, Compute::fp32, placement, &lost);
  lost.reads_left = 1;
  EXPECT_THROW(reader.forward(batch, clean_perturbation(), losses), Error);
  EXPECT_THROW(reader.forward(batch, clean_perturbation(), losses), Error);
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
