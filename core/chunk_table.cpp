// SPDX-License-Identifier: BSD-3-Clause
#include "core/chunk_table.hpp"

#include <xxhash.h>

#include <algorithm>

namespace distzo2 {
namespace {

std::size_t vectors_offset(const Block& block, Storage storage) {
  return static_cast<std::size_t>(block.vectors_first - block.first) * bytes_of(storage);
}

std::int64_t rows_of_chunk(const Tensor& tensor, Storage storage, std::size_t target_bytes) {
  const auto row_bytes = static_cast<std::size_t>(tensor.cols) * bytes_of(storage);
  const auto granules = static_cast<std::int64_t>(target_bytes / row_bytes) / chunk_row_granule;
  return std::max<std::int64_t>(granules, 1) * chunk_row_granule;
}

void append_matrix(ChunkTable& table, const Block& block, const Tensor& tensor, int index, Storage storage,
                   std::size_t target_bytes) {
  const std::int64_t step = rows_of_chunk(tensor, storage, target_bytes);
  for (std::int64_t row = 0; row < tensor.rows; row += step) {
    Chunk c;
    c.block = tensor.block;
    c.tensor_begin = index;
    c.tensor_end = index + 1;
    c.row_begin = row;
    c.row_end = std::min(row + step, tensor.rows);
    c.first = tensor.first + row * tensor.cols;
    c.elements = (c.row_end - row) * tensor.cols;
    c.offset = static_cast<std::size_t>(c.first - block.first) * bytes_of(storage);
    c.bytes = static_cast<std::size_t>(c.elements) * bytes_of(storage);
    table.chunks.push_back(c);
  }
}

}  // namespace

std::size_t image_bytes(const Block& block, Storage storage) {
  return vectors_offset(block, storage) + static_cast<std::size_t>(block.end - block.vectors_first) * sizeof(float);
}

std::size_t image_offset(const Block& block, const Tensor& tensor, Storage storage) {
  return tensor.matrix ? static_cast<std::size_t>(tensor.first - block.first) * bytes_of(storage)
                       : vectors_offset(block, storage) +
                             static_cast<std::size_t>(tensor.first - block.vectors_first) * sizeof(float);
}

ChunkTable make_chunk_table(const TensorTable& table, Storage storage, std::size_t target_bytes) {
  ChunkTable result;
  for (int b = 0; b < std::ssize(table.blocks); ++b) {
    const Block& block = table.blocks[static_cast<std::size_t>(b)];
    result.block_begin.push_back(static_cast<int>(result.chunks.size()));
    int i = block.tensor_begin;
    for (; i < block.tensor_end && table.tensors[static_cast<std::size_t>(i)].matrix; ++i)
      append_matrix(result, block, table.tensors[static_cast<std::size_t>(i)], i, storage, target_bytes);
    if (i == block.tensor_end) continue;
    Chunk vectors;
    vectors.block = b;
    vectors.tensor_begin = i;
    vectors.tensor_end = block.tensor_end;
    vectors.first = block.vectors_first;
    vectors.elements = block.end - block.vectors_first;
    vectors.offset = vectors_offset(block, storage);
    vectors.bytes = static_cast<std::size_t>(vectors.elements) * sizeof(float);
    result.chunks.push_back(vectors);
  }
  result.block_begin.push_back(static_cast<int>(result.chunks.size()));
  for (const Chunk& c : result.chunks) result.slot_bytes = std::max(result.slot_bytes, c.bytes);
  result.slot_bytes = (result.slot_bytes + page_bytes - 1) / page_bytes * page_bytes;
  return result;
}

std::uint64_t chunk_table_digest(const ChunkTable& table) {
  std::vector<std::uint64_t> words{table.slot_bytes};
  for (const Chunk& c : table.chunks)
    words.insert(words.end(), {static_cast<std::uint64_t>(c.block), static_cast<std::uint64_t>(c.first),
                               static_cast<std::uint64_t>(c.elements), c.offset, c.bytes});
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

}  // namespace distzo2
