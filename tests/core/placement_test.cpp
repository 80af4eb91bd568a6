// SPDX-License-Identifier: BSD-3-Clause
#include "core/placement.hpp"

#include "tests/core/chunk_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace distzo2 {
namespace {

std::vector<int> units_of_blocks(const Placement& p) {
  std::vector<int> result;
  for (std::size_t b = 0; b + 1 < p.unit_begin.size(); ++b) result.push_back(p.unit_begin[b + 1] - p.unit_begin[b]);
  return result;
}

void expect_every_chunk_covered(const TensorTable& table, Storage storage, bool groups) {
  const ChunkTable chunks = make_chunk_table(table, storage);
  const Placement p = make_units(table, chunks, groups);
  ASSERT_EQ(p.unit_begin.size(), table.blocks.size() + 1);
  EXPECT_EQ(p.groups, groups);
  int next = 0;
  for (int u = 0; u < std::ssize(p.units); ++u) {
    const Unit& unit = p.units[static_cast<std::size_t>(u)];
    ASSERT_EQ(unit.chunk_begin, next);
    ASSERT_GT(unit.chunk_end, next);
    ASSERT_GE(u, p.unit_begin[static_cast<std::size_t>(unit.block)]);
    ASSERT_LT(u, p.unit_begin[static_cast<std::size_t>(unit.block) + 1]);
    const Chunk& first = chunks.chunks[static_cast<std::size_t>(unit.chunk_begin)];
    const Chunk& last = chunks.chunks[static_cast<std::size_t>(unit.chunk_end) - 1];
    ASSERT_EQ(first.block, unit.block);
    ASSERT_EQ(last.block, unit.block);
    EXPECT_EQ(unit.offset, first.offset);
    EXPECT_EQ(unit.offset + unit.bytes, last.offset + last.bytes);
    EXPECT_EQ(unit.tier, Tier::resident);
    next = unit.chunk_end;
  }
  EXPECT_EQ(next, std::ssize(chunks.chunks));
}

TEST(Placement, covers_every_chunk_once) {
  for (const Storage storage : {Storage::fp32, Storage::bf16})
    for (const bool groups : {false, true}) {
      expect_every_chunk_covered(opt_like(200, 32, 2), storage, groups);
      expect_every_chunk_covered(opt_like(9000, 1536, 2), storage, groups);
      expect_every_chunk_covered(llama_like(9001, 1000, 2), storage, groups);
    }
}

TEST(Placement, takes_whole_blocks_or_one_matrix_at_a_time) {
  const TensorTable table = opt_like(200, 32, 2);
  const ChunkTable chunks = make_chunk_table(table, Storage::fp32);
  // Embedding, positions | a block | a block | the final norm
  EXPECT_EQ(units_of_blocks(make_units(table, chunks, false)), (std::vector<int>{2, 1, 1, 1}));
  // Six matrices and their vectors a block
  const Placement groups = make_units(table, chunks, true);
  EXPECT_EQ(units_of_blocks(groups), (std::vector<int>{2, 7, 7, 1}));
  for (int u = 2; u < 9; ++u) EXPECT_EQ(groups.units[static_cast<std::size_t>(u)].vectors, u == 8);
  // q: 32 x 32 floats; fc1: 128 x 32 behind the four matrices before it
  EXPECT_EQ(groups.units[2].bytes, 4096U);
  EXPECT_EQ(groups.units[6].offset, 4U * 4096);
  EXPECT_EQ(groups.units[6].bytes, 16384U);
  // 7 * 32 + 128 floats, from index 4 * 1,024 + 2 * 4,096 on
  EXPECT_EQ(groups.units[8].bytes, 352U * 4);
  EXPECT_EQ(groups.units[8].offset, 12288U * 4);
  const Placement blocks = make_units(table, chunks, false);
  EXPECT_EQ(blocks.units[2].bytes, 12288U * 4 + 352 * 4);
  EXPECT_FALSE(blocks.units[2].vectors);
}

TEST(Placement, cuts_embedding_and_head_no_larger_than_the_largest_unit_of_a_decoder_block) {
  // fp32, hidden 1,024: a row of 4 KiB, chunks of 1,024 rows = 4 MiB. down: 1,024 rows of 12 KiB in chunks of 320 rows.
  const TensorTable table = llama_like(9300, 1024, 2);
  const ChunkTable chunks = make_chunk_table(table, Storage::fp32, std::size_t{4} << 20);
  // Group mode: gate is 3,072 rows of 4 KiB = 12 MiB, so three chunks a range: 3,072 rows three times, then 84 rows.
  const Placement groups = make_units(table, chunks, true);
  EXPECT_EQ(units_of_blocks(groups), (std::vector<int>{4, 8, 8, 5}));
  std::vector<std::size_t> bytes;
  for (int u = 0; u < 4; ++u) bytes.push_back(groups.units[static_cast<std::size_t>(u)].bytes);
  EXPECT_EQ(bytes, (std::vector<std::size_t>{3072 * 4096, 3072 * 4096, 3072 * 4096, 84 * 4096}));
  for (int u = 0; u < 4; ++u)
    EXPECT_EQ(groups.units[static_cast<std::size_t>(20 + u)].bytes, bytes[static_cast<std::size_t>(u)]);
  // Whole blocks: 1,024 + 512 + 512 + 1,024 + 3 * 3,072 = 12,288 such rows, so the 9,300 are one unit.
  const Placement blocks = make_units(table, chunks, false);
  EXPECT_EQ(units_of_blocks(blocks), (std::vector<int>{1, 1, 1, 2}));
}

TEST(Placement, streams_decoder_blocks_and_vocabulary_alone) {
  const auto streaming = [](const TensorTable& table, bool groups) {
    const ChunkTable chunks = make_chunk_table(table, Storage::bf16);
    const Placement p = make_units(table, chunks, groups);
    std::vector<bool> result;
    for (int u = 0; u < std::ssize(p.units); ++u) result.push_back(may_stream(p, table, chunks, u));
    return result;
  };
  // Embedding, not positions | blocks | not the final norm
  EXPECT_EQ(streaming(opt_like(200, 32, 2), false), (std::vector<bool>{true, false, true, true, false}));
  // Embedding | 7 matrices and vectors | head, not the final norm
  EXPECT_EQ(streaming(llama_like(200, 32, 1), true),
            (std::vector<bool>{true, true, true, true, true, true, true, true, true, true, false}));
}

TEST(Placement, sizes_buffers_by_what_streams) {
  const TensorTable table = opt_like(200, 32, 1);
  const ChunkTable chunks = make_chunk_table(table, Storage::fp32);
  Placement p = make_units(table, chunks, true);
  size_buffers(p);
  EXPECT_FALSE(p.streams_any());
  EXPECT_EQ(p.buffer_bytes, 0U);
  p.units[3].tier = Tier::host;  // k, 4,096 B: compute reads it where it is
  size_buffers(p);
  EXPECT_FALSE(p.streams_any());
  p.staging = true;
  size_buffers(p);
  EXPECT_TRUE(p.streams_any());
  EXPECT_EQ(p.buffer_bytes, 4096U);
  EXPECT_EQ(p.vector_buffer_bytes, 0U);
  p.staging = false;
  p.units[0].tier = Tier::disk;  // the embedding: 200 * 32 floats = 25,600 B = 6.25 pages
  p.units[8].tier = Tier::disk;  // 352 floats
  size_buffers(p);
  EXPECT_TRUE(p.streams_any());
  EXPECT_EQ(p.buffer_bytes, 7U * 4096);
  EXPECT_EQ(p.vector_buffer_bytes, 4096U);
}

}  // namespace
}  // namespace distzo2
