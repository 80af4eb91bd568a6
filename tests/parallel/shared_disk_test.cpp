// SPDX-License-Identifier: BSD-3-Clause
#include "core/kokkos_scope.hpp"
#include "parallel/shared_window.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/test_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

// A disk that the ranks of a node share: each unit is read once for all of them, and losses and theta keep the bits of
// a rank alone that has everything in memory.

/// Chunks in a window, where a write is over what stood there: a rank that still looks a row up would see it change.
class WindowDisk final : public BlockStorage {
public:
  WindowDisk(SharedWindow& window, const ChunkTable& table)
      : table_(table),
        leads_(window.owner() == 0),
        words_(window.allocate("versions", sizeof(std::uint32_t) * table.chunks.size())),
        noted_(table.chunks.size()) {
    for (const Chunk& c : table.chunks) bytes_.push_back(window.allocate("chunk", c.bytes));
  }
  static std::size_t window_bytes(const ChunkTable& table) {
    std::size_t bytes = sizeof(std::uint32_t) * table.chunks.size() + page_bytes;
    for (const Chunk& c : table.chunks) bytes += c.bytes + page_bytes;
    return bytes;
  }

  void read(int begin, int end, std::byte* image) override {
    EXPECT_TRUE(leads_);
    for (int c = begin; c < end; ++c) std::copy_n(at(c), chunk(c).bytes, image + offset(begin, c));
    reads += 1;
  }
  void read_part(int c, std::size_t from, std::span<std::byte> to) override {
    while (word(c).load(std::memory_order_acquire) < noted_[static_cast<std::size_t>(c)]) std::this_thread::yield();
    std::copy_n(at(c) + from, to.size(), to.data());
    EXPECT_EQ(word(c).load(std::memory_order_acquire), noted_[static_cast<std::size_t>(c)]);
  }
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override {
    for (int c = begin; c < end; ++c) {
      if (leads_) std::copy_n(image + offset(begin, c), chunk(c).bytes, at(c));
      noted_[static_cast<std::size_t>(c)] = version + 1;
      if (leads_) word(c).store(version + 1, std::memory_order_release);
    }
  }
  bool holds(int c) const override { return noted_[static_cast<std::size_t>(c)] > 0; }
  std::uint32_t version(int c) const override { return noted_[static_cast<std::size_t>(c)] - 1; }

  std::atomic<int> reads{0};

private:
  const Chunk& chunk(int c) const { return table_.chunks[static_cast<std::size_t>(c)]; }
  std::byte* at(int c) { return bytes_[static_cast<std::size_t>(c)].get(); }
  std::size_t offset(int begin, int c) const { return chunk(c).offset - chunk(begin).offset; }
  std::atomic_ref<std::uint32_t> word(int c) {
    return std::atomic_ref(reinterpret_cast<std::uint32_t*>(words_.get())[c]);
  }

  const ChunkTable& table_;
  bool leads_;
  std::shared_ptr<std::byte> words_;  // of each chunk, one more than its version
  std::vector<std::shared_ptr<std::byte>> bytes_;
  std::vector<std::uint32_t> noted_;
};

/// With a tied table, of which rows are looked up and which each pass streams.
void expect_bits_of_one_rank(FamilyKind family, const UpdateRule& rule, const Tiers& tiers) {
  const ModelConfig config = small_model(family, true);
  const TensorTable table = tensor_table(config);
  Engine alone(config, rule, Compute::fp32, resident_placement(table, rule.storage), nullptr);
  import_random(alone.store());
  const StepsResult expected = run_steps(alone, rule, 6);

  Placement placement = place(table, rule.storage, tiers, chunk_target_bytes);
  for (Unit& u : placement.units)  // what a pass begins with may not be fetched before it is brought up to date
    if (tiers.staging && u.block == 1) u.tier = Tier::host;
  size_buffers(placement);
  SharedWindow memory(test_world(), WindowDisk::window_bytes(placement.chunks), test_world().rank());
  SharedWindow window(test_world(), node_memory_bytes(placement, test_world().size()), test_world().rank());
  WindowDisk disk(memory, placement.chunks);
  Engine engine(config, rule, Compute::fp32, placement, &disk, {}, {}, &window);
  import_random(engine.store());
  engine.store().imported();
  test_world().barrier();
  const StepsResult shared = run_steps(engine, rule, 6);
  EXPECT_EQ(shared.losses, expected.losses);
  EXPECT_EQ(shared.theta, expected.theta);
  EXPECT_EQ(disk.reads > 0, test_world().is_first());
  test_world().barrier();
}

TEST(SharedDisk, gives_the_bits_of_one_rank) {
  const KokkosScope kokkos(1);
  // Tiers: name, tier, staging, groups, buffers, write back every, resident blocks.
  expect_bits_of_one_rank(FamilyKind::llama, {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                          {"disk", Tier::disk, false, false, 2, 1});
  expect_bits_of_one_rank(FamilyKind::opt, {3, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 2},
                          {"staged", Tier::disk, true, true, 3, 4});
}

}  // namespace
}  // namespace distzo2
