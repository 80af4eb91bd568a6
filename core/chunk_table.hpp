// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"
#include "core/tensor_table.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace distzo2 {

/// Bytes that direct I/O and devices like to see things aligned to.
constexpr std::size_t page_bytes = 4096;

/// Where a block's tensors stand in its image, the flat buffer that holds it in storage precision: the matrices in
/// index order, then, at the image's place of Block::vectors_first, the one-dimensional tensors in fp32.
std::size_t image_bytes(const Block& block, Storage storage);
std::size_t image_offset(const Block& block, const Tensor& tensor, Storage storage);

/// The unit of versions and of writing on disk: whole rows of one matrix, or a block's run of one-dimensional tensors.
struct Chunk {
  int block = 0;
  int tensor_begin = 0, tensor_end = 0;     // one matrix, or all one-dimensional tensors of the block
  std::int64_t row_begin = 0, row_end = 0;  // of the matrix; 0, 0 for one-dimensional tensors
  std::int64_t first = 0;                   // first global index
  std::int64_t elements = 0;                // indices from the first to the last one used
  std::size_t offset = 0, bytes = 0;        // in the block's image
  bool matrix() const { return row_end > 0; }
};

/// Depends on the model and the storage precision alone: not on ranks, tiers or budgets. Rows of a chunk are a multiple
/// of `chunk_row_granule`, so that panels of `linear` never cross one (the last chunk of a matrix may be short).
struct ChunkTable {
  std::vector<Chunk> chunks;     // in storage order
  std::vector<int> block_begin;  // chunks of block b: [block_begin[b], block_begin[b + 1])
  std::size_t slot_bytes = 0;    // the largest chunk, rounded up to page_bytes
};
constexpr std::int64_t chunk_row_granule = 64;
// As large as 64 rows of OPT-175B's widest matrix, so that slots of one size waste little.
constexpr std::size_t chunk_target_bytes = std::size_t{8} << 20;

ChunkTable make_chunk_table(const TensorTable& table, Storage storage, std::size_t target_bytes = chunk_target_bytes);

/// XXH3-64 of where its chunks lie: equal tables have equal digests, on disk too.
std::uint64_t chunk_table_digest(const ChunkTable& table);

}  // namespace distzo2
