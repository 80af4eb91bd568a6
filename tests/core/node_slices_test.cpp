// SPDX-License-Identifier: BSD-3-Clause
#include "core/node_slices.hpp"

#include "core/host_arena.hpp"
#include "core/parameter_store.hpp"
#include "tests/core/chunk_fixture.hpp"
#include "tests/support/thread_node.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

// Chunks so small that a store updates each on the calling thread alone.
constexpr std::size_t small_chunk = std::size_t{1} << 14;

TEST(SliceOf, cuts_at_multiples_of_4096_and_covers_a_unit_once) {
  // 10,000 indices from 8,192 on, for two: the middle, 13,192, goes up to 16,384.
  EXPECT_EQ(slice_of(8192, 18192, 0, 2).begin, 8192);
  EXPECT_EQ(slice_of(8192, 18192, 0, 2).end, 16384);
  EXPECT_EQ(slice_of(8192, 18192, 1, 2).begin, 16384);
  EXPECT_EQ(slice_of(8192, 18192, 1, 2).end, 18192);
  // A unit that starts and ends anywhere (groups): only its inner cuts are multiples.
  EXPECT_EQ(slice_of(100, 9000, 0, 2).end, 8192);
  EXPECT_EQ(slice_of(100, 9000, 1, 2).end, 9000);
  // More owners than parts: 5,000 indices give two slices of what there is, the others none.
  std::int64_t size = 0;
  for (int owner = 0; owner < 4; ++owner) {
    const SliceRange s = slice_of(4096, 9096, owner, 4);
    EXPECT_LE(s.begin, s.end);
    size += s.end - s.begin;
  }
  EXPECT_EQ(size, 5000);
  // OPT-175B's largest block, 1.8e9 indices from beyond 32 bits on: neighbours meet, sizes differ by one cut at most.
  const std::int64_t first = std::int64_t{1} << 37, end = first + 1812000000;
  for (const int owners : {1, 2, 3, 4, 6, 64}) {
    std::int64_t next = first;
    for (int owner = 0; owner < owners; ++owner) {
      const SliceRange s = slice_of(first, end, owner, owners);
      EXPECT_EQ(s.begin, next);
      EXPECT_EQ(s.begin % 4096, 0);
      EXPECT_NEAR(static_cast<double>(s.end - s.begin), 1812000000.0 / owners, 4096.0);
      next = s.end;
    }
    EXPECT_EQ(next, end);
  }
}

struct State {
  std::uint64_t digest = 0, shared = 0, replayed = 0;
  double rounding_noise = 0;
  bool operator==(const State&) const = default;
};

StepRecord record(std::uint32_t t) {
  StepRecord r;
  r.t = t;
  r.lr = 0.01;
  r.wd = 0.1F;
  r.c = {0.01F * static_cast<float>(t % 3), -0.02F};
  return r;
}

/// A store's life as the loop gives it one, without products: passes, digests between them, an update beside a pass.
State live(const TensorTable& table, const UpdateRule& rule, const Placement& placement, NodeMemory* node,
           std::vector<std::uint64_t>& between) {
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  ParameterStore store(table, rule, *arena, placement, nullptr, {}, nullptr, node);
  for (int c = 0; c < std::ssize(placement.chunks.chunks); ++c) {
    std::mt19937 random(static_cast<unsigned>(c));
    std::vector<float> values(static_cast<std::size_t>(placement.chunks.chunks[static_cast<std::size_t>(c)].elements));
    for (float& v : values) v = static_cast<float>(random() % 2048) / 1024.0F - 1.0F;
    store.import_chunk(c, values);
  }
  store.imported();
  for (std::uint32_t t = 0; t < 9; ++t) {
    store.begin_pass(token_table);
    for (int b = 0; b < std::ssize(table.blocks); ++b) {
      store.open_block(b);
      // What a fused pass does as it multiplies; with slices it finds nothing left to do.
      for (int i = table.blocks[static_cast<std::size_t>(b)].tensor_begin;
           i < table.blocks[static_cast<std::size_t>(b)].tensor_end; ++i) {
        if (node != nullptr) {
          EXPECT_EQ(store.weight(i).absorb, 0U);
        }
        if (table.tensors[static_cast<std::size_t>(i)].matrix) store.apply_pending_matrix(i);
      }
      store.apply_pending_vectors(b);
      store.close_block(b);
    }
    store.end_pass();
    if (t % 4 == 2) between.push_back(store.digest());  // the others go on as far as they may
    store.append(record(t));
    if (t == 5) store.update_shared();
    if (t == 6) between.push_back(store.digest());  // with a record pending
  }
  State state;
  state.digest = store.digest();
  state.shared = store.shared_digest();
  store.apply_pending();
  state.replayed = store.digest();
  state.rounding_noise = store.rounding().accumulated_noise();
  return state;
}

TEST(NodeSlices, give_the_bits_of_one_rank) {
  const TensorTable table = opt_like(300, 64, 3);
  const auto run = [&](const UpdateRule& rule, bool groups, bool staged = false) {
    Placement placement = make_units(table, make_chunk_table(table, rule.storage, small_chunk), groups);
    placement.staging = staged;
    for (Unit& u : placement.units)
      if (staged && is_decoder(table, u.block)) u.tier = Tier::host;
    size_buffers(placement);
    std::vector<std::uint64_t> alone_between;
    const State alone = live(table, rule, placement, nullptr, alone_between);
    EXPECT_EQ(alone.digest, alone.replayed);
    EXPECT_EQ(alone.digest, alone.shared);
    for (const int owners : {2, 3, 4, 6}) {
      ThreadNode node(owners, node_memory_bytes(placement, owners));
      std::vector<State> states(static_cast<std::size_t>(owners));
      std::vector<std::vector<std::uint64_t>> between(static_cast<std::size_t>(owners));
      std::vector<std::jthread> ranks;
      for (int owner = 0; owner < owners; ++owner)
        ranks.emplace_back([&, owner] {
          const auto i = static_cast<std::size_t>(owner);
          ThreadNode::Rank memory(node, owner);
          states[i] = live(table, rule, placement, &memory, between[i]);
        });
      ranks.clear();
      for (int owner = 0; owner < owners; ++owner) {
        const auto i = static_cast<std::size_t>(owner);
        EXPECT_EQ(states[i].digest, alone.digest) << owner << " of " << owners;
        EXPECT_EQ(states[i].shared, alone.digest);
        EXPECT_EQ(states[i].replayed, alone.replayed);
        EXPECT_EQ(between[i], alone_between);
        EXPECT_NEAR(states[i].rounding_noise, alone.rounding_noise, 1e-6 * alone.rounding_noise);
      }
    }
  };
  run({7, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1}, false);
  run({7, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 1}, false);
  run({7, DirectionKind::gaussian, Storage::bf16, Rounding::nearest, 3}, true);
  run({7, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1}, false, true);
  run({7, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 2}, false, true);
}

TEST(NodeSlices, of_a_rank_that_has_another_record_are_digested_by_each) {
  const TensorTable table = opt_like(300, 64, 2);
  const Placement placement = make_units(table, make_chunk_table(table, Storage::fp32, small_chunk), false);
  constexpr std::size_t owners = 3;
  ThreadNode node(owners, node_memory_bytes(placement, owners));
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  std::vector<std::uint64_t> shared(owners), own(owners);
  std::vector<std::jthread> ranks;
  for (std::size_t owner = 0; owner < owners; ++owner)
    ranks.emplace_back([&, owner] {
      ThreadNode::Rank memory(node, static_cast<int>(owner));
      ParameterStore store(table, {}, *arena, placement, nullptr, {}, nullptr, &memory);
      StepRecord pending = record(1);
      pending.t = 0;
      if (owner == 1) pending.c[1] = std::nextafter(pending.c[1], 0.0F);
      store.append(pending);
      shared[owner] = store.shared_digest();
      own[owner] = store.digest();
    });
  ranks.clear();
  EXPECT_EQ(shared, own);
  EXPECT_NE(own[1], own[0]);
  EXPECT_EQ(own[2], own[0]);
}

TEST(NodeSlices, end_the_wait_for_an_owner_that_does_not_come) {
  ThreadNode node(2, 1 << 16);
  ThreadNode::Rank memory(node, 0);
  memory.most_seconds = 0.01;
  NodeSlices slices(memory, 3);
  slices.publish(1, 4);
  try {
    slices.wait_for(1, 4);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "owner 1: waited too long for its slices of the parameters");
  }
  EXPECT_THROW(slices.meet(), std::runtime_error);
}

TEST(NodeMemoryBytes, hold_what_a_store_takes) {
  for (const bool groups : {false, true}) {
    const TensorTable table = llama_like(300, 64, 3);
    const Placement placement = make_units(table, make_chunk_table(table, Storage::bf16, small_chunk), groups);
    ThreadNode node(1, node_memory_bytes(placement, 1));
    ThreadNode::Rank memory(node, 0);
    const std::unique_ptr<HostArena> arena = make_kokkos_arena();
    const ParameterStore store(table, {.storage = Storage::bf16}, *arena, placement, nullptr, {}, nullptr, &memory);
    EXPECT_GE(memory.used(), store.bytes());
    EXPECT_GE(node_memory_bytes(placement, 1), memory.used());
  }
}

}  // namespace
}  // namespace distzo2
