// SPDX-License-Identifier: BSD-3-Clause
// A store whose streamed units lie on a disk that the ranks of a node share: the bits of a rank that has all in memory.
#include "core/parameter_store.hpp"
#include "tests/core/chunk_fixture.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/thread_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

/// A disk that the first rank reads and writes, and of which the others read rows. A write overwrites at once: who may
/// still look up what stood there finds the new bytes.
class DiskOfNode {
public:
  explicit DiskOfNode(const ChunkTable& table) : bytes_(table), chunks_(table.chunks.size()) {}

  class Rank final : public BlockStorage {
  public:
    Rank(DiskOfNode& disk, int owner) : disk_(disk), first_(owner == 0) {
      const std::lock_guard lock(disk.mutex_);
      for (std::size_t c = 0; c < disk.chunks_; ++c) versions_.push_back(disk.bytes_.version(static_cast<int>(c)));
    }
    void read(int begin, int end, std::byte* image) override {
      EXPECT_TRUE(first_) << "units are read by the first rank alone";
      const std::lock_guard lock(disk_.mutex_);
      disk_.bytes_.read(begin, end, image);
    }
    void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override {
      if (before_rows) before_rows();
      row_bytes += to.size();
      std::unique_lock lock(disk_.mutex_);
      disk_.written_.wait(lock, [&] { return disk_.bytes_.version(chunk) >= version(chunk); });
      disk_.bytes_.read_part(chunk, offset, to);
    }
    void write(int begin, int end, const std::byte* image, std::uint32_t version) override {
      std::fill(versions_.begin() + begin, versions_.begin() + end, version);
      if (!first_) return;
      const std::lock_guard lock(disk_.mutex_);
      disk_.bytes_.write(begin, end, image, version);
      disk_.written_.notify_all();
    }
    bool holds(int) const override { return true; }
    std::uint32_t version(int chunk) const override { return versions_[static_cast<std::size_t>(chunk)]; }
    std::function<void()> before_rows;
    std::atomic<std::size_t> row_bytes{0};  // read of rows

  private:
    DiskOfNode& disk_;
    bool first_;
    std::vector<std::uint32_t> versions_;
  };

  /// Every second chunk as it was in `earlier`, as after a crash.
  void set_back(MemoryStorage& earlier) {
    for (std::size_t c = 0; c < chunks_; c += 2) bytes_.put(static_cast<int>(c), earlier);
  }
  void copy_to(MemoryStorage& other) {
    for (std::size_t c = 0; c < chunks_; ++c) other.put(static_cast<int>(c), bytes_);
  }
  int writes() const { return bytes_.writes; }

private:
  MemoryStorage bytes_;
  std::size_t chunks_;
  std::mutex mutex_;
  std::condition_variable written_;
};

StepRecord shared_record(std::uint32_t t) {
  return {t, 1e-2, 0.1F, {0.01F * static_cast<float>(t % 3 + 1)}, {1.0}, {1.0}, {1.0, 1.0}};
}

/// Chunks of these tiers, to the values that a chunk has in every placement.
void import_chunks(ParameterStore& store, bool on_disk) {
  for (const Unit& u : store.placement().units)
    for (int c = u.chunk_begin; c < u.chunk_end; ++c) {
      if (!on_disk && u.tier == Tier::disk) continue;
      std::mt19937 random(static_cast<unsigned>(c));
      std::vector<float> values(static_cast<std::size_t>(store.chunks().chunks[static_cast<std::size_t>(c)].elements));
      for (float& v : values) v = static_cast<float>(random() % 2048) / 1024.0F - 1.0F;
      store.import_chunk(c, values);
    }
  store.imported();
}

/// A pass as the engine makes it, without products: the values of these rows of the embedding.
std::vector<float> pass_over(ParameterStore& store, bool tied, std::span<const std::int32_t> ids,
                             const std::function<void()>& looked_up = nullptr) {
  const TensorTable& table = store.table();
  const int head = tied ? token_table : table.blocks.back().tensor_begin;
  std::vector<float> rows(ids.size() * static_cast<std::size_t>(table.tensors.front().cols));
  store.begin_pass(head);
  if (store.streams_tensor(token_table)) {
    const Weight w = store.gather_rows(token_table, ids);
    std::copy_n(reinterpret_cast<const float*>(w.data), rows.size(), rows.begin());
  } else {
    for (std::size_t i = 0; i < ids.size(); ++i)
      store.read(token_table, ids[i] * table.tensors.front().cols,
                 std::span(rows).subspan(i * rows.size() / ids.size(), rows.size() / ids.size()));
  }
  if (looked_up) looked_up();
  store.update_streamed_table();
  for (int b = 0; b < std::ssize(table.blocks); ++b) {
    store.open_block(b);
    if (is_decoder(table, b)) {
      const Block& block = table.blocks[static_cast<std::size_t>(b)];
      for (int i = block.tensor_begin; i < block.tensor_end; ++i) {
        if (!table.tensors[static_cast<std::size_t>(i)].matrix) continue;
        if (store.placement().groups) store.open_matrix(i);
        store.apply_pending_matrix(i);
        if (store.placement().groups) store.close_matrix(i);
      }
    }
    store.apply_pending_vectors(b);
    store.close_block(b);
  }
  for (const int u : store.units_of(head)) {
    store.open(u);
    const Weight w = store.rows_in(head, u);
    store.apply_pending(w);
    store.absorbed_rows(head, u);
    store.close(u);
  }
  store.end_pass();
  return rows;
}

constexpr std::int32_t token_ids[] = {3, 250, 3};
constexpr std::uint32_t steps_of_life = 11;

struct DiskLife {
  std::vector<std::vector<float>> rows;  // of each pass
  std::uint64_t digest = 0, replayed = 0;
  bool operator==(const DiskLife&) const = default;
};

/// Steps, each with its record, an evaluation after every fourth; halfway the disk may be copied.
DiskLife live_on_disk(ParameterStore& store, bool tied, const std::function<void()>& halfway = nullptr) {
  DiskLife life;
  for (std::uint32_t t = 0; t < steps_of_life; ++t) {
    life.rows.push_back(pass_over(store, tied, token_ids));
    if (t % 4 == 3) life.rows.push_back(pass_over(store, tied, token_ids));
    store.append(shared_record(t));
    if (t == steps_of_life / 2 && halfway) halfway();
  }
  life.digest = store.digest();
  return life;
}

struct DiskWay {
  bool tied;
  UpdateRule rule;
  Tiers tiers;
};

Placement placement_of_way(const TensorTable& table, const DiskWay& way) {
  return place(table, way.rule.storage, way.tiers);
}

TensorTable table_of_way(const DiskWay& way) {
  return way.tied ? opt_like(300, 64, 3) : llama_like(9000, 64, 3);
}

/// As many threads as owners, each with its place in the node's memory and its view of the disk.
template <class Run>
void on_owners(int owners, const Placement& p, DiskOfNode& disk, const Run& run) {
  ThreadNode node(owners, node_memory_bytes(p, owners));
  std::vector<std::jthread> ranks;
  for (int owner = 0; owner < owners; ++owner)
    ranks.emplace_back([&, owner] {
      ThreadNode::Rank memory(node, owner);
      DiskOfNode::Rank own(disk, owner);
      run(memory, own);
    });
}

class SharedDisk : public ::testing::TestWithParam<DiskWay> {};

TEST_P(SharedDisk, gives_the_bits_of_one_rank_and_goes_on_from_chunks_of_different_versions) {
  const DiskWay& way = GetParam();
  const TensorTable table = table_of_way(way);
  const Placement p = placement_of_way(table, way);
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  ParameterStore alone(table, way.rule, *arena,
                       place(table, way.rule.storage, {"", Tier::resident, false, false, 2, 1}), nullptr);
  import_chunks(alone, true);
  const DiskLife expected = live_on_disk(alone, way.tied);
  for (const int owners : {2, 3}) {
    DiskOfNode disk(p.chunks);
    MemoryStorage earlier(p.chunks);
    std::vector<DiskLife> lives(static_cast<std::size_t>(owners));
    std::vector<std::uint64_t> shared(lives.size(), 0), replayed(shared), resumed(shared);
    std::vector<std::size_t> read_alone(lives.size(), 0), read_together(lives.size(), 0);
    on_owners(owners, p, disk, [&](ThreadNode::Rank& memory, DiskOfNode::Rank& own) {
      const auto i = static_cast<std::size_t>(memory.owner());
      ParameterStore store(table, way.rule, *arena, p, &own, {}, nullptr, &memory);
      import_chunks(store, true);
      lives[i] = live_on_disk(store, way.tied, [&] {
        if (i > 0) return;
        store.pipeline()->drain();
        disk.copy_to(earlier);
      });
      own.row_bytes = 0;
      shared[i] = store.shared_digest();
      read_together[i] = own.row_bytes;
      store.apply_pending();
      own.row_bytes = 0;
      replayed[i] = store.digest();
      read_alone[i] = own.row_bytes;
    });
    disk.set_back(earlier);
    on_owners(owners, p, disk, [&](ThreadNode::Rank& memory, DiskOfNode::Rank& own) {
      ParameterStore store(table, way.rule, *arena, p, &own, {}, nullptr, &memory);
      import_chunks(store, false);
      for (std::uint32_t t = 0; t < steps_of_life; ++t) store.append(shared_record(t));
      store.level_versions();
      resumed[static_cast<std::size_t>(memory.owner())] = store.digest();
    });
    // A digest of all of them together reads all once, each a part where the model has parts for all.
    EXPECT_GT(read_alone.front(), 0U);
    EXPECT_EQ(std::accumulate(read_together.begin(), read_together.end(), std::size_t{0}), read_alone.front());
    if (!way.tied) {
      EXPECT_LE(std::ranges::max(read_together), read_alone.front() * 2 / 3);
    }
    for (std::size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(lives[i].rows, expected.rows) << "owner " << i << " of " << owners;
      EXPECT_EQ(lives[i].digest, expected.digest);
      EXPECT_EQ(shared[i], expected.digest);
      EXPECT_EQ(replayed[i], expected.digest);
      EXPECT_EQ(resumed[i], expected.digest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, SharedDisk,
                         ::testing::Values(DiskWay{false,
                                                   {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                                                   {"untied", Tier::disk, false, false, 2, 1}},
                                           DiskWay{true,
                                                   {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                                                   {"tied", Tier::disk, false, false, 3, 4}},
                                           DiskWay{false,
                                                   {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 2},
                                                   {"bf16", Tier::disk, false, false, 2, 4}},
                                           DiskWay{true,
                                                   {3, DirectionKind::rademacher, Storage::bf16, Rounding::nearest, 1},
                                                   {"groups", Tier::disk, false, true, 2, 1, 1}},
                                           DiskWay{false,
                                                   {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                                                   {"staged", Tier::disk, true, false, 2, 1}}),
                         [](const auto& way) { return way.param.tiers.name; });

TEST(SharedDisk, keeps_what_another_rank_still_looks_up) {
  const DiskWay way{false,
                    {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1},
                    {"untied", Tier::disk, false, false, 2, 1}};
  const TensorTable table = llama_like(300, 64, 3);  // an embedding of one unit, the first that is stored
  const Placement p = placement_of_way(table, way);
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  constexpr std::int32_t id[] = {3};
  ParameterStore alone(table, way.rule, *arena,
                       place(table, way.rule.storage, {"", Tier::resident, false, false, 2, 1}), nullptr);
  import_chunks(alone, true);
  alone.append(shared_record(0));
  const std::vector<float> expected = pass_over(alone, false, id);
  DiskOfNode disk(p.chunks);
  // Of the first rank: it is at its rows, and what it does there takes as long as the other one.
  std::atomic<bool> looks_up{false}, waits{false};
  int imported = 0;
  std::vector<std::vector<float>> rows(2);
  on_owners(2, p, disk, [&](ThreadNode::Rank& memory, DiskOfNode::Rank& own) {
    ParameterStore store(table, way.rule, *arena, p, &own, {}, nullptr, &memory);
    import_chunks(store, true);
    const bool first = memory.owner() == 0;
    if (first) {
      imported = disk.writes();
      own.before_rows = [&] { looks_up = true; };
      memory.waiting = [&](const std::string& awaited) {  // its lanes wait, too, but not for slices
        if (looks_up && awaited == "its slices of the parameters") waits = true;
      };
    } else {  // held until the first one waits for it, or has stored the row's next version
      own.before_rows = [&] {
        while (!waits && disk.writes() == imported) std::this_thread::yield();
      };
    }
    store.imported();
    store.append(shared_record(0));
    rows[static_cast<std::size_t>(memory.owner())] = pass_over(store, false, id, [&] {
      if (first) looks_up = false;
    });
  });
  EXPECT_EQ(rows[0], expected);
  EXPECT_EQ(rows[1], expected);
}

}  // namespace
}  // namespace distzo2
