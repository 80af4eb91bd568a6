// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace distzo2 {

/// Slow storage of chunks (core/chunk_table.hpp), copy on write: io/block_file implements it on a disk. Calls block
/// until the bytes have moved; lanes make them asynchronous. Any number of threads may call at once, but not for a
/// chunk that one of them writes. Errors are thrown as Error (file).
struct BlockStorage {
  virtual ~BlockStorage() = default;

  /// Chunks [begin, end) of one block, each checked against its checksum, to where they stand in the block's image:
  /// chunk c to image + (chunk c's offset - chunk begin's offset).
  virtual void read(int begin, int end, std::byte* image) = 0;

  /// Bytes [offset, offset + to.size()) of one chunk (rows of an embedding), checked as well.
  virtual void read_part(int chunk, std::size_t offset, std::span<std::byte> to) = 0;

  /// The next version of chunks [begin, end) of one block, from their place in the block's image as above. `version` is
  /// the first record not in them. What stood there stays readable after a crash until the new bytes are durable.
  virtual void write(int begin, int end, const std::byte* image, std::uint32_t version) = 0;

  /// The first record not yet in the chunk; none where it was never written or did not check when it was opened.
  virtual bool holds(int chunk) const = 0;
  virtual std::uint32_t version(int chunk) const = 0;

  /// For people: where it is.
  virtual std::string name() const { return "the store"; }
};

}  // namespace distzo2
