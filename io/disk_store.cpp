// SPDX-License-Identifier: BSD-3-Clause
#include "io/disk_store.hpp"

#include "core/error.hpp"
#include "core/node_chunks.hpp"
#include "io/block_file.hpp"
#include "io/slot_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// The store of a node's first rank as the others have it.
class StoreOfFirst final : public DiskStore {
public:
  StoreOfFirst(std::shared_ptr<NodeChunks> chunks, const fs::path& folder, const ChunkTable& table,
               const BlockFileOptions& options)
      : folder_(folder),
        chunks_(std::move(chunks)),
        rows_(BlockFile::data_file(folder), table.slot_bytes, options.direct, options.callers) {
    for (int c = 0; c < std::ssize(table.chunks); ++c) versions_.push_back(chunks_->version(c));
  }

  void read(int, int, std::byte*) override {
    throw Error(ExitCode::internal, "a rank reads a unit from the store of another");
  }
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override {
    const std::uint32_t wanted = version(chunk);
    const std::optional<SlotHeader> header = rows_.read_part(chunks_->await_place(chunk, wanted), offset, to);
    if (!header || header->chunk != static_cast<std::uint32_t>(chunk) || header->version < wanted)
      fail_check(fmt::format("{}: chunk {}", rows_.file().path().string(), chunk));
  }
  void write(int begin, int end, const std::byte*, std::uint32_t version) override {
    std::fill(versions_.begin() + begin, versions_.begin() + end, version);
  }
  bool holds(int chunk) const override { return versions_.at(static_cast<std::size_t>(chunk)).has_value(); }
  std::uint32_t version(int chunk) const override { return versions_.at(static_cast<std::size_t>(chunk)).value(); }

  void sync() override {}  // the first one's work

  const fs::path& folder() const override { return folder_; }
  std::uint64_t bytes_read() const override { return rows_.bytes_read(); }
  std::uint64_t bytes_written() const override { return 0; }

private:
  fs::path folder_;
  std::shared_ptr<NodeChunks> chunks_;
  SlotFile rows_;
  std::vector<std::optional<std::uint32_t>> versions_;  // as this rank knows them
};

}  // namespace

std::unique_ptr<DiskStore> open_disk_store(NodeMemory* node, const fs::path& folder, const ChunkTable& table,
                                           Storage storage, BlockFileOptions options) {
  if (node == nullptr) return std::make_unique<BlockFile>(folder, table, storage, options);
  const auto chunks = std::make_shared<NodeChunks>(*node, static_cast<int>(table.chunks.size()), folder.string());
  std::unique_ptr<DiskStore> store;
  if (node->owner() == 0) {
    options.stored = [chunks](int chunk, std::uint32_t version, std::uint64_t slot) {
      chunks->publish(chunk, version, static_cast<std::uint32_t>(slot));
    };
    store = std::make_unique<BlockFile>(folder, table, storage, options);
  }
  chunks->meet();  // what was found has been published
  if (!store) store = std::make_unique<StoreOfFirst>(chunks, folder, table, options);
  chunks->meet();  // and seen, before the first one writes: all ranks know of the same chunks
  return store;
}

}  // namespace distzo2
