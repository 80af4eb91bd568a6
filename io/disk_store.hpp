// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/block_storage.hpp"
#include "core/chunk_table.hpp"
#include "core/node_memory.hpp"
#include "core/precision.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace distzo2 {

struct BlockFileOptions;

/// Chunks in a folder on a disk, as the rank that has them open sees them, or one that shares them.
struct DiskStore : BlockStorage {
  /// Everything written is durable.
  virtual void sync() = 0;
  virtual const std::filesystem::path& folder() const = 0;
  virtual std::uint64_t bytes_read() const = 0;  // by this rank
  virtual std::uint64_t bytes_written() const = 0;
  std::string name() const override { return folder().string(); }
};

/// The store of one rank (`node` is null), or one for all owners of `node`, which call this together: then the first
/// has it open, as io/block_file does, and reads whole units for all (core/node_reads.hpp). The others read rows where
/// that one says that they lie; what they write is what it writes, and they note the version alone.
std::unique_ptr<DiskStore> open_disk_store(NodeMemory* node, const std::filesystem::path& folder,
                                           const ChunkTable& table, Storage storage, BlockFileOptions options);

}  // namespace distzo2
