// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace distzo2 {

/// Requests as a store of chunks makes them (io/block_file.hpp).
struct DiskMix {
  double read_share = 0.5;                                      // of the bytes; the rest is written
  std::size_t request_bytes = chunk_target_bytes + page_bytes;  // a slot; rounded up to whole pages
  int threads = 5;  // that help the calling one: a store has four, and two lanes call it
  bool direct = true;
};

struct DiskSpeed {
  std::uint64_t bytes_read = 0, bytes_written = 0;
  double seconds = 0;
  double read_bytes_per_s() const { return static_cast<double>(bytes_read) / seconds; }
  double written_bytes_per_s() const { return static_cast<double>(bytes_written) / seconds; }
  double bytes_per_s() const { return read_bytes_per_s() + written_bytes_per_s(); }
};

/// What the disk of `folder` moves when it reads and writes in this mix, interleaved, for about `seconds`, what was
/// written made durable within that time. It works on a file of `bytes` (at least four requests), filled before, that
/// has no name and so is gone afterwards however this ends. Error (file) where the space is not there.
DiskSpeed measure_disk(const std::filesystem::path& folder, const DiskMix& mix, std::uint64_t bytes, double seconds);

}  // namespace distzo2
