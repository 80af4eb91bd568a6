// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "io/direct_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

/// One block for each list of chunk sizes; chunks follow each other in the image without a gap.
inline ChunkTable table_of(const std::vector<std::vector<std::size_t>>& blocks) {
  ChunkTable table;
  std::int64_t first = 0;
  for (int b = 0; b < std::ssize(blocks); ++b) {
    table.block_begin.push_back(static_cast<int>(table.chunks.size()));
    std::size_t offset = 0;
    for (const std::size_t bytes : blocks[static_cast<std::size_t>(b)]) {
      Chunk c;
      c.block = b;
      c.tensor_end = 1;
      c.row_end = static_cast<std::int64_t>(bytes);
      c.first = first;
      c.elements = static_cast<std::int64_t>(bytes);
      c.offset = offset;
      c.bytes = bytes;
      table.chunks.push_back(c);
      offset += bytes;
      first += c.elements;
      table.slot_bytes = std::max(table.slot_bytes, round_up_to_page(bytes));
    }
  }
  table.block_begin.push_back(static_cast<int>(table.chunks.size()));
  return table;
}

/// A byte that says where and of which version it is.
inline std::byte pattern(int chunk, std::uint32_t version, std::size_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(chunk) * 0xbf58476d1ce4e5b9U + version;
  x ^= x >> 29;
  return static_cast<std::byte>(x * 0x94d049bb133111ebU >> 56);
}

/// Memory for an image that starts `skew` bytes beyond a page, filled with `fill`.
struct Image {
  Image(std::size_t bytes, std::size_t skew, std::byte fill = std::byte{0xaa})
      : memory(make_page_buffer(bytes + skew + 64)), size(bytes), data(memory.get() + skew) {
    std::fill(memory.get(), data + bytes + 64, fill);
  }
  PageBuffer memory;
  std::size_t size;
  std::byte* data;
};

/// Chunks [begin, end) of one block at this version.
inline Image image_of(const ChunkTable& table, int begin, int end, std::uint32_t version, std::size_t skew = 0) {
  const auto at = [&](int i) -> const Chunk& { return table.chunks[static_cast<std::size_t>(i)]; };
  Image image(at(end - 1).offset + at(end - 1).bytes - at(begin).offset, skew);
  for (int c = begin; c < end; ++c)
    for (std::size_t i = 0; i < at(c).bytes; ++i)
      image.data[at(c).offset - at(begin).offset + i] = pattern(c, version, i);
  return image;
}

/// The first byte that is not as written, as text; empty where all are.
inline std::string difference(const ChunkTable& table, int chunk, std::uint32_t version, const std::byte* data) {
  for (std::size_t i = 0; i < table.chunks[static_cast<std::size_t>(chunk)].bytes; ++i)
    if (data[i] != pattern(chunk, version, i))
      return "chunk " + std::to_string(chunk) + " version " + std::to_string(version) + " byte " + std::to_string(i);
  return "";
}

}  // namespace distzo2
