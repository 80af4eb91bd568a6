// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/node_slices.hpp"
#include "io/block_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// A store on disk that the ranks of a node share, or one rank alone has. The first of them has it open; the others
/// read rows where that one says that they lie, and what they write is what it writes: they note the version alone.
class NodeBlockFile final : public BlockStorage {
public:
  /// By all owners of `memory`; null: alone. As BlockFile otherwise.
  NodeBlockFile(NodeMemory* memory, const std::filesystem::path& folder, const ChunkTable& table, Storage storage,
                const BlockFileOptions& options);

  /// On the first alone: the others get whole units from it (core/node_reads.hpp).
  void read(int begin, int end, std::byte* image) override;
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override;
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override;
  bool holds(int chunk) const override;
  std::uint32_t version(int chunk) const override;
  std::string name() const override { return folder_.string(); }

  void sync();
  void remove();
  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t bytes_read() const { return file_ ? file_->bytes_read() : rows_->bytes_read(); }
  std::uint64_t bytes_written() const { return file_ ? file_->bytes_written() : 0; }

private:
  void tell(int chunk);

  std::filesystem::path folder_;
  int chunks_;
  std::unique_ptr<NodeSlices> words_;  // of the first: a chunk's version and one more, 0 where there is none; its slot
  std::unique_ptr<BlockFile> file_;    // of the first
  std::unique_ptr<SlotFile> rows_;     // of the others
  std::vector<std::uint32_t> versions_;  // of the others, and one more
};

}  // namespace distzo2
