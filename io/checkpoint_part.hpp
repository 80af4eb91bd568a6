// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "io/ranged_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

// A part is one file of a checkpoint: some chunks of a model as they are stored, one after another, each from a
// multiple of page_bytes on, then an index of their versions and hashes. Little-endian, as in memory.

/// What the checkpoint's manifest says of a part.
struct CheckpointPart {
  int chunk_begin = 0, chunk_end = 0;
  std::uint64_t bytes = 0;       // of the file
  std::uint64_t index_hash = 0;  // XXH3-64 of the index, which holds those of the chunks
};

/// The part that begins with this chunk: "chunks-000012.bin".
std::string part_file_name(int chunk_begin);

/// work(chunk, page-aligned memory for the largest chunk) for each of these chunks, here and on `threads` threads. The
/// first exception is thrown again.
void for_each_chunk(std::span<const int> chunks, const ChunkTable& table, int threads,
                    const std::function<void(int chunk, std::byte* memory)>& work);

/// What that takes of the memory.
std::uint64_t chunk_memory_bytes(const ChunkTable& table, int threads);

/// Bytes of a part with these chunks.
std::uint64_t part_bytes(const ChunkTable& table, int chunk_begin, int chunk_end);

/// Gives a chunk's bytes, to memory of that size, and returns its version; called by several threads.
using ReadChunk = std::function<std::uint32_t(int chunk, std::byte* to)>;

/// Writes the part of chunks [begin, end) into the folder, a new file, and makes it durable. Takes chunk_memory_bytes.
CheckpointPart write_checkpoint_part(const std::filesystem::path& folder, const ChunkTable& table, int begin, int end,
                                     const ReadChunk& read, int threads);

/// A part that is only ever read. Refusals are Error (file).
class CheckpointPartReader {
public:
  /// Reads the index. Refused where the file or its index is not what the manifest says.
  CheckpointPartReader(const std::filesystem::path& folder, const CheckpointPart& part, const ChunkTable& table);
  std::uint32_t version(int chunk) const { return entry(chunk).version; }
  /// The chunk's bytes, checked. Threads may read at once.
  void read(int chunk, std::byte* to) const;

  struct Entry {
    std::uint32_t version = 0, reserved = 0;
    std::uint64_t hash = 0;  // XXH3-64 of the chunk's bytes
  };

private:
  const Entry& entry(int chunk) const { return index_.at(static_cast<std::size_t>(chunk - part_.chunk_begin)); }
  RangedFile file_;
  CheckpointPart part_;
  const ChunkTable& table_;
  std::vector<std::uint64_t> offsets_;  // of the chunks, then of the index
  std::vector<Entry> index_;
};

}  // namespace distzo2
