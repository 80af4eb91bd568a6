// SPDX-License-Identifier: BSD-3-Clause
#include "core/engine.hpp"
#include "core/error.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/small_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

// Tiers, groups, buffers and write-back decide where the bytes are, and nothing else: losses and theta keep their bits.

struct Way {
  Tiers tiers;
  int delay_us = 0;  // of each transfer of the disk
  double link = 0;   // bytes a second
};

Placement place_on_disk(const ModelConfig& config, Storage storage, std::uint32_t write_back_every = 1) {
  return place(tensor_table(config), storage, {"disk", Tier::disk, false, false, 2, write_back_every});
}

struct Result {
  StepsResult steps;
  std::uint64_t replayed = 0;
};

Result run(const ModelConfig& config, const UpdateRule& rule, const Way& way, Compute compute) {
  const Placement placement = place(tensor_table(config), rule.storage, way.tiers);
  MemoryStorage disk(placement.chunks);
  Engine engine(config, rule, compute, placement, &disk, {way.link});
  import_random(engine.store());
  disk.delay = std::chrono::microseconds(way.delay_us);
  Result result{run_steps(engine, rule, 11)};
  engine.store().apply_pending();
  result.replayed = engine.store().digest();
  return result;
}

const Way resident{{"resident", Tier::resident, false, false, 2, 1}};
const Way others[] = {{{"resident in groups", Tier::resident, false, true, 2, 1}},
                      {{"staged", Tier::host, true, false, 2, 1}},
                      {{"staged, three buffers, written back every 8", Tier::host, true, false, 3, 8}},
                      {{"staged in groups", Tier::host, true, true, 2, 1}},
                      {{"disk", Tier::disk, false, false, 2, 1}},
                      {{"disk, written back every 8", Tier::disk, false, false, 3, 8}},
                      {{"disk in groups, written back every 8", Tier::disk, false, true, 2, 8}},
                      {{"disk, one block resident", Tier::disk, false, false, 2, 1, 1}},
                      {{"disk, staged", Tier::disk, true, false, 2, 1}},
                      {{"disk, staged in groups, written back every 8", Tier::disk, true, true, 3, 8}}};

void expect_equal_bits(FamilyKind family, bool tied, const UpdateRule& rule, std::span<const Way> ways = others,
                       Compute compute = Compute::fp32) {
  const ModelConfig config = small_model(family, tied);
  const Result expected = run(config, rule, resident, compute);
  EXPECT_EQ(expected.steps.theta, expected.replayed);
  for (const Way& way : ways) {
    const Result result = run(config, rule, way, compute);
    EXPECT_EQ(result.steps.losses, expected.steps.losses) << way.tiers.name;
    EXPECT_EQ(result.steps.theta, expected.steps.theta) << way.tiers.name;
    EXPECT_EQ(result.replayed, expected.steps.theta) << way.tiers.name;
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
  const Way slow[] = {{{"slow disk", Tier::disk, false, false, 2, 1}, 3000},
                      {{"slow disk, three buffers", Tier::disk, false, false, 3, 1}, 3000},
                      {{"slow disk in groups, staged", Tier::disk, true, true, 2, 1}, 1000},
                      {{"slow disk and link", Tier::disk, true, false, 3, 1}, 2000, 2e8},
                      {{"slow link", Tier::host, true, false, 2, 1}, 0, 5e7},
                      {{"slow link, three buffers, groups", Tier::host, true, true, 3, 1}, 0, 1e8}};
  expect_equal_bits(FamilyKind::llama, true, {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                    slow);
}

TEST(Streaming, goes_on_from_chunks_of_different_versions) {
  for (const auto& [storage, every] : {std::pair{Storage::fp32, 1U}, {Storage::bf16, 4U}}) {
    const ModelConfig config = small_model(FamilyKind::llama, true);
    const UpdateRule rule{3, DirectionKind::gaussian, storage, Rounding::stochastic, every};
    const Placement placement = place_on_disk(config, storage, every);
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
  const ModelConfig config = small_model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const Placement placement = place_on_disk(config, rule.storage);
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
  const ModelConfig config = small_model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const Placement placement = place_on_disk(config, rule.storage);
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
  const ModelConfig config = small_model(FamilyKind::llama, true);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  for (const std::uint32_t every : {1U, 4U}) {
    const Placement placement = place_on_disk(config, rule.storage, every);
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
