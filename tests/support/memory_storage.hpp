// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/block_storage.hpp"
#include "core/chunk_table.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace distzo2 {

/// A disk that is memory, slow on request: then a read that did not wait for the write before it finds the old bytes.
/// `writes_left`, `reads_left`: so many more work.
class MemoryStorage final : public BlockStorage {
public:
  explicit MemoryStorage(const ChunkTable& table)
      : table_(table), bytes_(table.chunks.size()), version_(bytes_.size()) {
    for (std::size_t c = 0; c < bytes_.size(); ++c) bytes_[c].resize(table.chunks[c].bytes);
  }
  void read(int begin, int end, std::byte* image) override {
    if (reads_left-- <= 0) throw Error(ExitCode::file, "the disk is gone");
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    for (int c = begin; c < end; ++c) std::ranges::copy(at(c), image + offset(begin, c));
  }
  void read_part(int chunk, std::size_t from, std::span<std::byte> to) override {
    std::copy_n(at(chunk).begin() + static_cast<std::ptrdiff_t>(from), to.size(), to.begin());
  }
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override {
    if (writes_left-- <= 0) throw Error(ExitCode::file, "the disk is full");
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    for (int c = begin; c < end; ++c) {
      std::copy_n(image + offset(begin, c), at(c).size(), at(c).begin());
      version_[static_cast<std::size_t>(c)] = version;
    }
    ++writes;
  }
  bool holds(int) const override { return true; }
  void put(int chunk, MemoryStorage& other) {
    at(chunk) = other.at(chunk);
    version_[static_cast<std::size_t>(chunk)] = other.version(chunk);
  }
  std::string name() const override { return "a disk in memory"; }
  std::uint32_t version(int chunk) const override { return version_[static_cast<std::size_t>(chunk)]; }

  std::atomic<int> writes_left{1 << 30}, reads_left{1 << 30};
  std::chrono::microseconds delay{0};
  std::atomic<int> writes{0};

private:
  std::vector<std::byte>& at(int c) { return bytes_[static_cast<std::size_t>(c)]; }
  std::size_t offset(int begin, int c) const {
    return table_.chunks[static_cast<std::size_t>(c)].offset - table_.chunks[static_cast<std::size_t>(begin)].offset;
  }
  const ChunkTable& table_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<std::uint32_t> version_;
};

}  // namespace distzo2
