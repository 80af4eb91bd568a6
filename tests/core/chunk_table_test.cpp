// SPDX-License-Identifier: BSD-3-Clause
#include "core/chunk_table.hpp"

#include "tests/core/chunk_fixture.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace distzo2 {
namespace {

std::vector<std::int64_t> rows_of_chunks(std::int64_t rows, std::int64_t cols, Storage storage) {
  std::vector<std::int64_t> result;
  for (const Chunk& c : make_chunk_table(make_tensor_table({{{"w", rows, cols, true}}}), storage).chunks)
    result.push_back(c.row_end - c.row_begin);
  return result;
}

TEST(ChunkTable, cuts_matrices_near_8_MiB_in_multiples_of_64_rows) {
  using Rows = std::vector<std::int64_t>;
  // A row of 32 KiB: 256 of them are 8 MiB. In 16 bits 512.
  EXPECT_EQ(rows_of_chunks(1000, 8192, Storage::fp32), (Rows{256, 256, 256, 232}));
  EXPECT_EQ(rows_of_chunks(1000, 8192, Storage::bf16), (Rows{512, 488}));
  // A row of 10,240 B: 819 would fit, which is 12 granules of 64.
  EXPECT_EQ(rows_of_chunks(1024, 5120, Storage::fp16), (Rows{768, 256}));
  // A row of 192 KiB: 42 would fit, and 64 is the least.
  EXPECT_EQ(rows_of_chunks(200, 98304, Storage::bf16), (Rows{64, 64, 64, 8}));
  EXPECT_EQ(rows_of_chunks(3, 5, Storage::fp32), (Rows{3}));
}

TEST(ChunkTable, places_matrices_in_storage_precision_and_vectors_in_fp32) {
  // Block 0: 100 * 50 = 5,000 indices of "a", its vectors from index 8,192 on. Block 1 from index 12,288 on.
  const TensorTable table = make_tensor_table(
      {{{"a", 100, 50, true}, {"b", 1, 7, false}, {"c", 1, 9, false}}, {{"d", 64, 64, true}, {"e", 2, 3, true}}});
  EXPECT_EQ(image_bytes(table.blocks[0], Storage::bf16), 8192U * 2 + 16 * 4);
  EXPECT_EQ(image_bytes(table.blocks[0], Storage::fp32), 8192U * 4 + 16 * 4);
  EXPECT_EQ(image_offset(table.blocks[0], table.tensors[1], Storage::bf16), 8192U * 2);
  EXPECT_EQ(image_offset(table.blocks[0], table.tensors[2], Storage::bf16), 8192U * 2 + 7 * 4);
  EXPECT_EQ(image_offset(table.blocks[1], table.tensors[4], Storage::fp16), 4096U * 2);
  EXPECT_EQ(image_offset(table.blocks[1], table.tensors[4], Storage::fp32), 4096U * 4);

  const ChunkTable chunks = make_chunk_table(table, Storage::bf16);
  ASSERT_EQ(chunks.chunks.size(), 4U);
  EXPECT_EQ(chunks.block_begin, (std::vector<int>{0, 2, 4}));
  const Chunk& vectors = chunks.chunks[1];
  EXPECT_FALSE(vectors.matrix());
  EXPECT_EQ(vectors.tensor_begin, 1);
  EXPECT_EQ(vectors.tensor_end, 3);
  EXPECT_EQ(vectors.first, 8192);
  EXPECT_EQ(vectors.elements, 16);
  EXPECT_EQ(vectors.offset, 16384U);
  EXPECT_EQ(vectors.bytes, 64U);
  EXPECT_EQ(chunks.chunks[3].block, 1);
  EXPECT_EQ(chunks.chunks[3].first, 12288 + 4096);
  EXPECT_EQ(chunks.chunks[3].offset, 8192U);
  // The largest chunk is "a": 10,000 B, 3 pages.
  EXPECT_EQ(chunks.slot_bytes, 12288U);
}

/// Each index of each tensor lies in one chunk, at the place in the image that the tensor has there.
void expect_every_tensor_covered(const TensorTable& table, Storage storage) {
  const ChunkTable chunks = make_chunk_table(table, storage);
  std::size_t at = 0;
  for (int t = 0; t < std::ssize(table.tensors); ++t) {
    const Tensor& tensor = table.tensors[static_cast<std::size_t>(t)];
    const Block& block = table.blocks[static_cast<std::size_t>(tensor.block)];
    for (std::int64_t next = tensor.first; next < tensor.first + tensor.size();) {
      ASSERT_LT(at, chunks.chunks.size());
      const Chunk& c = chunks.chunks[at];
      ASSERT_EQ(c.block, tensor.block);
      ASSERT_LE(c.tensor_begin, t);
      ASSERT_GT(c.tensor_end, t);
      ASSERT_EQ(c.matrix(), tensor.matrix);
      if (c.matrix()) {
        ASSERT_EQ(c.first, next);
        ASSERT_EQ(c.row_begin % chunk_row_granule, 0);
        ASSERT_EQ(c.first, tensor.first + c.row_begin * tensor.cols);
        ASSERT_EQ(c.elements, (c.row_end - c.row_begin) * tensor.cols);
      }
      const std::size_t unit = c.matrix() ? bytes_of(storage) : sizeof(float);
      ASSERT_EQ(c.offset + static_cast<std::size_t>(next - c.first) * unit,
                image_offset(block, tensor, storage) + static_cast<std::size_t>(next - tensor.first) * unit);
      ASSERT_EQ(c.bytes, static_cast<std::size_t>(c.elements) * unit);
      ASSERT_LE(c.bytes, chunks.slot_bytes);
      const std::int64_t end = c.first + c.elements;
      // Two ranges of one run share no index; the run of vectors ends with its last tensor.
      const std::int64_t tensor_end = tensor.first + tensor.size();
      ASSERT_TRUE(end <= tensor_end || !c.matrix());
      next = std::min(end, tensor_end);
      if (end == next) ++at;
    }
  }
  EXPECT_EQ(at, chunks.chunks.size());
  EXPECT_EQ(chunks.block_begin.size(), table.blocks.size() + 1);
  for (int b = 0; b < std::ssize(table.blocks); ++b)
    for (int c = chunks.block_begin[static_cast<std::size_t>(b)];
         c < chunks.block_begin[static_cast<std::size_t>(b) + 1]; ++c)
      EXPECT_EQ(chunks.chunks[static_cast<std::size_t>(c)].block, b);
}

TEST(ChunkTable, covers_every_index_of_every_tensor_once) {
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
    expect_every_tensor_covered(opt_like(200, 32, 2), storage);
    expect_every_tensor_covered(opt_like(5000, 1536, 1), storage);
    expect_every_tensor_covered(llama_like(131, 24, 3), storage);
    expect_every_tensor_covered(llama_like(9001, 1000, 2), storage);
  }
}

TEST(ChunkTable, is_the_same_for_both_types_of_16_bits) {
  const TensorTable table = opt_like(5000, 1536, 1);
  const ChunkTable a = make_chunk_table(table, Storage::bf16), b = make_chunk_table(table, Storage::fp16);
  ASSERT_EQ(a.chunks.size(), b.chunks.size());
  for (std::size_t i = 0; i < a.chunks.size(); ++i) EXPECT_EQ(a.chunks[i].offset, b.chunks[i].offset);
}

}  // namespace
}  // namespace distzo2
