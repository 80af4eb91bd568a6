// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// One parameter tensor in canonical order (design section 3). `first` is its first global index: z of its element
/// (r, c) is z at first + r * cols + c.
struct Tensor {
  std::string name;       // Hugging Face name, e.g. "model.layers.0.self_attn.q_proj.weight"
  std::int64_t rows = 0;  // 1 for a one-dimensional tensor
  std::int64_t cols = 0;
  bool matrix = false;     // two or more dimensions: stored in S, decayed
  std::int64_t first = 0;  // first global index
  int block = 0;           // 0 embedding, 1..layers decoder blocks, layers + 1 head
  std::int64_t size() const { return rows * cols; }
};

/// A streaming unit: one flat run of global indices, matrices first, then (aligned) the one-dimensional tensors.
struct Block {
  std::int64_t first = 0;                // multiple of index_alignment
  std::int64_t vectors_first = 0;        // where the one-dimensional tensors start, multiple of index_alignment
  std::int64_t end = 0;                  // one past the last index used
  int tensor_begin = 0, tensor_end = 0;  // [begin, end) into TensorTable::tensors
};

/// Blocks, and the run of one-dimensional tensors in them, start at multiples of this many indices.
constexpr std::int64_t index_alignment = 4096;

/// The token embedding comes first in every family.
constexpr int token_table = 0;

/// For a family and its dimensions: every tensor with its name, shape, first index, block and decay flag.
/// Indices skipped by alignment belong to no tensor.
struct TensorTable {
  std::vector<Tensor> tensors;  // canonical order: ascending `first`
  std::vector<Block> blocks;    // embedding, decoder blocks, head
  std::int64_t parameters = 0;  // number of real parameters
  std::int64_t index_end = 0;   // one past the last index of the last block
};

/// What a family lists per block; positions are filled in by `make_tensor_table`.
struct TensorSpec {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  bool matrix = false;
};

/// Lays out blocks (each: matrices in the given order, then one-dimensional tensors) in canonical order.
TensorTable make_tensor_table(const std::vector<std::vector<TensorSpec>>& blocks);

/// Between the first block (embedding) and the last (head).
inline bool is_decoder(const TensorTable& table, int block) {
  return block > 0 && block + 1 < static_cast<int>(table.blocks.size());
}

/// XXH3-64 of the decay mask: of the runs of decayed global indices, begin and end as 64-bit integers, little-endian,
/// ascending, neighbours joined. It is the mask's alone: how it is cut into tensors does not matter.
std::uint64_t decay_mask_digest(const TensorTable& table);

/// Index of the tensor with this name, or -1.
int find_tensor(const TensorTable& table, std::string_view name);

}  // namespace distzo2
