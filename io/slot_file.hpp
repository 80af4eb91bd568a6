// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "io/direct_file.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace distzo2 {

/// What stands in the first page of a slot, before the hashes of the payload's parts.
struct SlotHeader {
  std::uint64_t store = 0;  // the identity of the store that wrote it
  std::uint32_t chunk = 0;
  std::uint32_t version = 0;
  std::uint64_t sequence = 0;      // of writes: of two equal versions the later counts
  std::uint64_t history = 0;       // digest of the records that are in it
  std::uint64_t bytes = 0;         // of the payload
  std::uint64_t payload_hash = 0;  // XXH3-64 of the hashes of its parts
};

/// Whether a file is empty or begins as a file of slots does: with a slot's header, or with a page of zeros where none
/// has been written.
bool begins_with_slots(const std::filesystem::path& file);

/// A file of equal slots, each a page of header and a payload of up to `payload_bytes` (a multiple of page_bytes), read
/// and written whatever the caller's addresses are. The header's page holds an XXH3-64 of each part of the payload, so
/// that what is read of it alone is checked as well. May be called from several threads; two of them never write one
/// slot. Allocates only where more than `transfers` threads are at it at once.
class SlotFile {
public:
  SlotFile(const std::filesystem::path& path, std::size_t payload_bytes, bool try_direct, int transfers);

  /// Memory for so many transfers at once.
  static std::uint64_t memory_bytes(int transfers);

  DirectFile& file() { return file_; }
  const DirectFile& file() const { return file_; }
  std::uint64_t stride() const { return stride_; }
  std::uint64_t slots() const { return file_.size() / stride_; }

  /// Writes the payload and its header, whose hash is filled in here.
  void write(std::uint64_t slot, SlotHeader& header, const std::byte* payload);
  /// Reads a payload of this size and returns its hash, as SlotHeader has it.
  std::uint64_t read(std::uint64_t slot, std::size_t bytes, std::byte* payload);
  /// The hash alone.
  std::uint64_t hash(std::uint64_t slot, std::size_t bytes);
  /// Bytes [offset, offset + to.size()) of the payload, and the header of the slot; none where the header is not whole
  /// or the parts that hold these bytes do not match their hashes.
  std::optional<SlotHeader> read_part(std::uint64_t slot, std::size_t offset, std::span<std::byte> to);
  /// None where no whole header stands there.
  std::optional<SlotHeader> header(std::uint64_t slot);
  void erase_header(std::uint64_t slot);

  std::uint64_t bytes_read() const { return read_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_written() const { return written_.load(std::memory_order_relaxed); }

private:
  /// One transfer's own pages: a header's, a tail's, and those through which unaligned bytes go.
  struct Scratch {
    explicit Scratch(PageBuffer own) : pages(std::move(own)) {}
    PageBuffer pages;
    std::byte* header() const { return pages.get(); }
    std::byte* tail() const;
    std::byte* bounce() const;
  };
  class Lease;
  std::uint64_t payload_at(std::uint64_t slot) const;
  std::optional<SlotHeader> read_header(const Scratch& scratch, std::uint64_t slot);
  void read_at(std::uint64_t offset, std::span<iovec> parts);
  void write_at(std::uint64_t offset, std::span<iovec> parts);
  template <class Use>
  void read_bounced(const Scratch& scratch, std::uint64_t slot, std::size_t begin, std::size_t end, Use&& use);

  DirectFile file_;
  std::uint64_t stride_ = 0;
  std::size_t part_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> idle_;
  std::atomic<std::uint64_t> read_{0}, written_{0};
};

}  // namespace distzo2
