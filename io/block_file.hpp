// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "core/precision.hpp"
#include "io/disk_store.hpp"
#include "io/io_pool.hpp"
#include "io/slot_file.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace distzo2 {

struct BlockFileOptions {
  /// Of what is stored, e.g. the digest of theta_0: a store with another one is refused.
  std::uint64_t identity = 0;
  /// Slots beyond one a chunk: twice the chunks of the largest write, so that every second write waits for a sync.
  int spare_slots = 8;
  int threads = 4;     // that help the calling ones
  int callers = 2;     // at once: the lanes that read and write, and threads that look rows up
  bool direct = true;  // where the file system can
  /// For this process alone: the folder and the file have no name from the start, so that whatever ends the process
  /// frees their space.
  bool temporary = false;
  /// Records that the trajectory holds: chunks of later versions are forgotten when a store is opened.
  std::uint32_t covered = std::numeric_limits<std::uint32_t>::max();
  /// The digest of the records before this version, which stands in what is written. Chunks that another history led
  /// to, those of another run say, are forgotten when a store is opened. None: 0 for each version.
  std::function<std::uint64_t(std::uint32_t version)> history = nullptr;
  /// Called before chunks of this version are written, by one thread at a time.
  std::function<void(std::uint32_t version)> before_write = nullptr;
  /// Called where a chunk of this version lies in a slot: for those found, and once they are written; by any thread.
  std::function<void(int chunk, std::uint32_t version, std::uint64_t slot)> stored = nullptr;
  /// Bytes checked so far and in all, while a store is opened; called from one thread at a time.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = nullptr;
};

/// Throws Error (file): this chunk, as a message names it, is not what was written.
[[noreturn]] void fail_check(const std::string& chunk);

/// Chunks in a folder on a disk, copy on write: `chunks.bin` holds slots of one chunk each with its header (design
/// section 3), `store.json` says what they are of. A slot whose chunk has been written anew is used again only once
/// the new one is durable. One process at a time; its folder holds nothing else that it would touch.
class BlockFile final : public DiskStore {
public:
  /// Opens the store in `folder`, or makes an empty one with its space taken. Of a store that is found, each chunk's
  /// latest covered version whose checksums hold counts: its payloads are all read for that. Error (file) where the
  /// store is of something else, is in use, or does not fit the disk, or something else stands in its place.
  BlockFile(const std::filesystem::path& folder, const ChunkTable& table, Storage storage,
            const BlockFileOptions& options);

  void read(int begin, int end, std::byte* image) override;
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override;
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override;
  bool holds(int chunk) const override;
  std::uint32_t version(int chunk) const override;
  void sync() override;
  const std::filesystem::path& folder() const override { return folder_; }
  std::uint64_t bytes_read() const override { return file_.bytes_read(); }
  std::uint64_t bytes_written() const override { return file_.bytes_written(); }

  bool direct() const { return file_.file().direct(); }
  /// The file of a store's slots.
  static std::filesystem::path data_file(const std::filesystem::path& folder);
  /// Bytes that a store of these chunks takes on the disk.
  static std::uint64_t disk_bytes(const ChunkTable& table, int spare_slots);
  /// The room for such a store in a folder, which need not exist.
  static FileRoom room(const std::filesystem::path& folder, const ChunkTable& table, int spare_slots);
  /// Whether a store, or the beginning of one, stands in a folder; and the bytes that it takes there.
  static bool stands_in(const std::filesystem::path& folder);
  static std::uint64_t bytes_in(const std::filesystem::path& folder);
  /// Throws the Error (file) that opening a store there would for lack of room.
  static void check_room(const std::filesystem::path& folder, const FileRoom& room);
  /// Memory that it takes for its transfers.
  static std::uint64_t memory_bytes(const BlockFileOptions& options);
  /// Deletes a store's files, and the folder where nothing else is in it; nothing where there is none, or files of
  /// these names are of something else. One that is open goes on without names.
  static void remove_files(const std::filesystem::path& folder);

private:
  struct Entry {
    std::int64_t slot = -1;
    std::uint32_t version = 0;
    std::uint64_t hash = 0;
  };
  void create(std::uint64_t slots, Storage storage);
  void open(std::uint64_t slots, const BlockFileOptions& options);
  void check_identity(Storage storage) const;
  void check_range(int begin, int end) const;
  void check_present() const;
  Entry held(int chunk) const;
  std::string describe(int chunk) const;
  const Chunk& chunk_at(int i) const { return table_.chunks[static_cast<std::size_t>(i)]; }
  int write_some(int begin, int end, const std::byte* image, std::uint32_t version, std::uint64_t history);
  std::uint64_t history_of(std::uint32_t version) const { return history_ ? history_(version) : 0; }

  std::filesystem::path folder_;
  ChunkTable table_;
  std::uint64_t identity_ = 0, table_digest_ = 0, store_ = 0;
  bool made_folder_ = false, temporary_ = false;
  SlotFile file_;
  IoPool pool_;
  std::function<void(std::uint32_t)> before_write_;
  std::function<std::uint64_t(std::uint32_t)> history_;
  std::function<void(int, std::uint32_t, std::uint64_t)> stored_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<Entry> entries_;
  std::vector<std::int64_t> free_, replaced_;  // replaced: by a chunk that is not known to be durable
  std::uint64_t sequence_ = 0, unsynced_bytes_ = 0;
  bool sync_failed_ = false;
  std::mutex write_mutex_;  // one write at a time
  std::vector<std::int64_t> reserved_;
  std::mutex sync_mutex_;  // one sync at a time
  std::vector<std::int64_t> syncing_;
};

}  // namespace distzo2
