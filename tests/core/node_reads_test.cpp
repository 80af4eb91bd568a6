// SPDX-License-Identifier: BSD-3-Clause
#include "core/node_reads.hpp"

#include "core/error.hpp"
#include "tests/core/chunk_fixture.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/thread_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

constexpr int passes = 12;

Placement decoders_on_disk() {
  const TensorTable table = llama_like(300, 64, 4);
  Placement p = make_units(table, make_chunk_table(table, Storage::bf16, std::size_t{1} << 14), true);
  for (Unit& u : p.units)
    if (is_decoder(table, u.block)) u.tier = Tier::disk;
  size_buffers(p);
  return p;
}

/// What stands at byte i of a unit in this pass.
std::byte value(int pass, int unit, std::size_t i) {
  return static_cast<std::byte>(31 * pass + 7 * unit + static_cast<int>(i % 251));
}

void fill(MemoryStorage& disk, const Placement& p, int pass, int unit) {
  const Unit& u = p.units[static_cast<std::size_t>(unit)];
  std::vector<std::byte> image(u.bytes);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = value(pass, unit, i);
  disk.write(u.chunk_begin, u.chunk_end, image.data(), static_cast<std::uint32_t>(pass));
}

TEST(NodeReads, give_all_owners_what_the_first_reads_once) {
  const Placement p = decoders_on_disk();
  for (const int owners : {1, 2, 3, 6}) {
    MemoryStorage disk(p.chunks);
    const int reads_before = disk.reads_left;
    ThreadNode node(owners, NodeReads::bytes(p, owners));
    std::vector<int> wrong(static_cast<std::size_t>(owners), 0), units(wrong);
    std::vector<std::jthread> ranks;
    for (int owner = 0; owner < owners; ++owner)
      ranks.emplace_back([&, owner] {
        ThreadNode::Rank memory(node, owner);
        MemoryStorage none(p.chunks);
        none.reads_left = 0;
        NodeReads reads(memory, p, owner == 0 ? disk : none);
        std::vector<std::byte> image(std::max(p.buffer_bytes, p.vector_buffer_bytes));
        for (int pass = 0; pass < passes; ++pass)
          for (int unit = 0; unit < std::ssize(p.units); ++unit) {
            const Unit& u = p.units[static_cast<std::size_t>(unit)];
            if (u.tier != Tier::disk) continue;
            // The disk is already another when the last owner takes what the first has read.
            if (owner == 0) fill(disk, p, pass, unit);
            if ((pass + owner) % 3 == 0) std::this_thread::yield();
            reads.read(u.chunk_begin, u.chunk_end, image.data());
            for (std::size_t i = 0; i < u.bytes; ++i)
              wrong[static_cast<std::size_t>(owner)] += image[i] != value(pass, unit, i) ? 1 : 0;
            ++units[static_cast<std::size_t>(owner)];
          }
      });
    ranks.clear();
    EXPECT_EQ(reads_before - disk.reads_left, units.front());
    for (const int n : units) EXPECT_EQ(n, passes * 4 * 8);  // of four blocks: seven matrices, and the norms
    for (const int n : wrong) EXPECT_EQ(n, 0);
  }
}

TEST(NodeReads, end_with_the_rank_that_waits_and_with_the_disk) {
  const Placement p = decoders_on_disk();
  ThreadNode node(2, NodeReads::bytes(p, 2));
  ThreadNode::Rank first(node, 0), second(node, 1);
  MemoryStorage disk(p.chunks);
  disk.reads_left = 1;
  NodeReads of_first(first, p, disk), of_second(second, p, disk);
  std::vector<std::byte> image(p.buffer_bytes);
  const auto unit = std::ranges::find(p.units, Tier::disk, &Unit::tier);
  of_first.read(unit->chunk_begin, unit->chunk_end, image.data());
  of_second.read(unit->chunk_begin, unit->chunk_end, image.data());
  EXPECT_THROW(of_first.read(unit->chunk_begin, unit->chunk_end, image.data()), Error);
  std::jthread ends([&] { of_second.end_waits(); });
  EXPECT_THROW(of_second.read(unit->chunk_begin, unit->chunk_end, image.data()), Error);
}

TEST(NodeReads, say_what_a_rank_waits_for_and_where_that_is) {
  const Placement p = decoders_on_disk();
  ThreadNode node(2, NodeReads::bytes(p, 2));
  ThreadNode::Rank first(node, 0), second(node, 1);
  first.most_seconds = second.most_seconds = 0.01;
  MemoryStorage disk(p.chunks);
  NodeReads of_first(first, p, disk), of_second(second, p, disk);
  std::vector<std::byte> image(p.buffer_bytes);
  const auto unit = std::ranges::find(p.units, Tier::disk, &Unit::tier);
  const auto complaint = [&](NodeReads& reads) -> std::string {
    try {
      reads.read(unit->chunk_begin, unit->chunk_end, image.data());
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_EQ(complaint(of_second), "owner 0: waited too long for the unit that it reads from a disk in memory");
  EXPECT_EQ(complaint(of_first), "");
  EXPECT_EQ(complaint(of_first), "");  // two units may be on their way
  EXPECT_EQ(complaint(of_first),
            "owner 1: waited too long for its word that it has taken what was read from a disk in memory");
}

}  // namespace
}  // namespace distzo2
