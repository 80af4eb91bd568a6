// SPDX-License-Identifier: BSD-3-Clause
// Chunks out of a store while records are pending, and into another one on other tiers: the bits of the first.
#include "core/engine.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/small_model.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace distzo2 {
namespace {

const Tiers in_memory{"resident", Tier::resident, false, false, 2, 1};
const Tiers staged{"staged, written back every 8", Tier::host, true, true, 3, 8};
const Tiers on_disk{"disk, written back every 8", Tier::disk, false, false, 3, 8};
const Tiers in_groups{"disk in groups, written back every 4", Tier::disk, false, true, 2, 4};

/// A model on these tiers.
struct Placed {
  Placed(const ModelConfig& config, const UpdateRule& rule, const Tiers& tiers)
      : placement(place(tensor_table(config), rule.storage, tiers)),
        disk(placement.chunks),
        engine(config, rule, Compute::fp32, placement, &disk) {}
  Placement placement;
  MemoryStorage disk;
  Engine engine;
};

struct StoredChunk {
  std::uint32_t version = 0;
  std::vector<std::byte> bytes;
};

std::vector<StoredChunk> chunks_of(const ParameterStore& store) {
  std::vector<StoredChunk> chunks;
  for (int c = 0; c < std::ssize(store.chunks().chunks); ++c) {
    StoredChunk& chunk = chunks.emplace_back();
    chunk.bytes.resize(store.chunks().chunks[static_cast<std::size_t>(c)].bytes);
    chunk.version = store.read_stored(c, chunk.bytes.data());
  }
  return chunks;
}

void expect_restored(const UpdateRule& rule, const Tiers& from, const Tiers& to) {
  SCOPED_TRACE(std::string(from.name) + " -> " + to.name);
  const ModelConfig config = small_model(FamilyKind::llama, false);
  Placed first(config, rule, from);
  import_random(first.engine.store());
  const std::vector<StepRecord> records = run_steps(first.engine, rule, 11).records;
  const std::vector<StoredChunk> chunks = chunks_of(first.engine.store());
  const std::uint64_t expected = first.engine.store().digest();
  bool differ = false, behind = false;
  for (const StoredChunk& c : chunks) {
    differ = differ || c.version != chunks.front().version;
    behind = behind || c.version < 11;
  }
  EXPECT_TRUE(behind);  // no step waits for its update
  EXPECT_EQ(differ, from.write_back_every > 1);

  Placed second(config, rule, to);
  ParameterStore& store = second.engine.store();
  for (int c = 0; c < std::ssize(chunks); ++c)
    store.restore_chunk(c, chunks[static_cast<std::size_t>(c)].bytes.data(),
                        chunks[static_cast<std::size_t>(c)].version);
  store.imported();
  for (const StepRecord& r : records) store.append(r);
  store.level_versions();
  EXPECT_EQ(store.digest(), expected);
  store.apply_pending();
  EXPECT_EQ(store.digest(), expected);
  // The next step sees the same parameters in every pass.
  const PackedBatch batch = batch_of_step(11);
  std::vector<double> a(batch.terms.size()), b(batch.terms.size());
  first.engine.forward(batch, clean_perturbation(), a);
  second.engine.forward(batch, clean_perturbation(), b);
  EXPECT_EQ(a, b);
}

TEST(StoreChunks, restored_on_any_tier_are_the_same_parameters) {
  for (const UpdateRule& rule : {UpdateRule{5, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                                 UpdateRule{5, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 1},
                                 UpdateRule{5, DirectionKind::gaussian, Storage::fp16, Rounding::stochastic, 4}})
    for (const Tiers* from : {&in_memory, &on_disk})
      for (const Tiers* to : {&in_memory, &staged, &on_disk, &in_groups}) expect_restored(rule, *from, *to);
}

}  // namespace
}  // namespace distzo2
