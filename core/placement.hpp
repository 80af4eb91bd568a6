// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace distzo2 {

/// Where a unit lives between passes: in the memory that computes, in host memory, or on disk.
enum class Tier : std::uint8_t { resident, host, disk };
const char* name_of(Tier tier);

/// What moves through a buffer at once: consecutive chunks of one block.
struct Unit {
  int block = 0;
  int chunk_begin = 0, chunk_end = 0;
  std::size_t offset = 0, bytes = 0;  // in the block's image, from its first chunk to its last
  Tier tier = Tier::resident;
  bool vectors = false;  // the one-dimensional tensors alone (group mode): has buffers of its own
};

/// How a model is cut into units and where each of them lives.
struct Placement {
  ChunkTable chunks;
  std::vector<Unit> units;              // in storage order; they cover every chunk once
  std::vector<int> unit_begin;          // units of block b: [unit_begin[b], unit_begin[b + 1])
  bool groups = false;                  // decoder blocks one matrix at a time
  bool staging = false;                 // host units go through buffers although compute could read them
  int buffers = 2;                      // 2 or 3 of each kind
  std::uint32_t write_back_every = 1;   // N, in steps: a multiple of R
  std::size_t buffer_bytes = 0;         // of one buffer for streamed units; 0 where nothing streams
  std::size_t vector_buffer_bytes = 0;  // of one for streamed units of one-dimensional tensors
  bool streams(const Unit& u) const { return u.tier == Tier::disk || (u.tier == Tier::host && staging); }
  bool streams_any() const;
};

/// Cuts a model into units, all resident. A decoder block is one unit, or in group mode one a matrix and one for its
/// one-dimensional tensors; the token embedding (tensor 0) and an untied head (the first tensor of the last block) are
/// cut into row ranges of whole chunks no larger than the largest unit of the decoder blocks. What else the first and
/// the last block hold is small, needed throughout a pass and never streamed: `may_stream` is false for it.
Placement make_units(const TensorTable& table, const ChunkTable& chunks, bool groups);
bool may_stream(const Placement& placement, const TensorTable& table, const ChunkTable& chunks, int unit);

/// The whole model in the memory that computes.
Placement resident_placement(const TensorTable& table, Storage storage);

/// Once tiers are chosen: the buffers that streamed units need.
void size_buffers(Placement& placement);

}  // namespace distzo2
