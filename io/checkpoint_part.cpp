// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_part.hpp"

#include "io/direct_file.hpp"
#include "io/fail.hpp"
#include "io/io_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointPartReader::Entry;

static_assert(std::endian::native == std::endian::little && sizeof(Entry) == 16);

/// Where each chunk of a part begins, and, last, where its index does.
std::vector<std::uint64_t> offsets_of(const ChunkTable& table, int begin, int end) {
  std::vector<std::uint64_t> offsets{0};
  for (int c = begin; c < end; ++c)
    offsets.push_back(offsets.back() + round_up_to_page(table.chunks[static_cast<std::size_t>(c)].bytes));
  return offsets;
}

std::size_t index_bytes(int chunks) {
  return static_cast<std::size_t>(chunks) * sizeof(Entry);
}

void write_at(DirectFile& file, std::uint64_t offset, std::byte* from, std::size_t bytes) {
  iovec part{from, round_up_to_page(bytes)};
  std::memset(from + bytes, 0, part.iov_len - bytes);
  file.write(offset, {&part, 1});
}

}  // namespace

std::string part_file_name(int chunk_begin) {
  return fmt::format("chunks-{:06}.bin", chunk_begin);
}

std::uint64_t chunk_memory_bytes(const ChunkTable& table, int threads) {
  return table.slot_bytes * (static_cast<std::uint64_t>(threads) + 1);
}

std::uint64_t part_bytes(const ChunkTable& table, int begin, int end) {
  return offsets_of(table, begin, end).back() + round_up_to_page(index_bytes(end - begin));
}

void for_each_chunk(std::span<const int> chunks, const ChunkTable& table, int threads,
                    const std::function<void(int chunk, std::byte* memory)>& work) {
  threads = std::min(threads, static_cast<int>(chunks.size()) - 1);
  IoPool pool(std::max(threads, 0));
  std::atomic<std::size_t> next{0};
  pool.run(threads + 1, [&](int) {
    const PageBuffer memory = make_page_buffer(table.slot_bytes);
    try {
      for (std::size_t i = next++; i < chunks.size(); i = next++) work(chunks[i], memory.get());
    } catch (...) {
      next = chunks.size();  // the others begin nothing more
      throw;
    }
  });
}

CheckpointPart write_checkpoint_part(const fs::path& folder, const ChunkTable& table, int begin, int end,
                                     const ReadChunk& read, int threads) {
  const std::vector<std::uint64_t> offsets = offsets_of(table, begin, end);
  CheckpointPart part{begin, end, part_bytes(table, begin, end), 0};
  DirectFile file(folder / part_file_name(begin), true);
  file.allocate(part.bytes, "free some, or keep fewer checkpoints (checkpoint/keep)");
  std::vector<Entry> index(static_cast<std::size_t>(end - begin));
  std::vector<int> chunks(index.size());
  std::iota(chunks.begin(), chunks.end(), begin);
  for_each_chunk(chunks, table, threads, [&](int c, std::byte* memory) {
    const auto i = static_cast<std::size_t>(c - begin);
    const std::size_t bytes = table.chunks[static_cast<std::size_t>(c)].bytes;
    index[i].version = read(c, memory);
    index[i].hash = XXH3_64bits(memory, bytes);
    write_at(file, offsets[i], memory, bytes);
  });
  part.index_hash = XXH3_64bits(index.data(), index_bytes(end - begin));
  const PageBuffer page = make_page_buffer(round_up_to_page(index_bytes(end - begin)));
  std::memcpy(page.get(), index.data(), index_bytes(end - begin));
  write_at(file, offsets.back(), page.get(), index_bytes(end - begin));
  file.sync();
  return part;
}

CheckpointPartReader::CheckpointPartReader(const fs::path& folder, const CheckpointPart& part, const ChunkTable& table)
    : file_(folder / part_file_name(part.chunk_begin)),
      part_(part),
      table_(table),
      offsets_(offsets_of(table, part.chunk_begin, part.chunk_end)),
      index_(static_cast<std::size_t>(part.chunk_end - part.chunk_begin)) {
  const std::uint64_t bytes = part_bytes(table, part.chunk_begin, part.chunk_end);
  if (file_.size() != bytes || part.bytes != bytes)
    fail(file_.path(), fmt::format("has {} bytes; {} were expected", file_.size(), bytes));
  file_.read(offsets_.back(), std::as_writable_bytes(std::span(index_)));
  if (XXH3_64bits(index_.data(), index_bytes(part.chunk_end - part.chunk_begin)) != part.index_hash)
    fail(file_.path(), "its index's checksum does not match: the disk has lost or changed it");
}

void CheckpointPartReader::read(int chunk, std::byte* to) const {
  const std::size_t bytes = table_.chunks[static_cast<std::size_t>(chunk)].bytes;
  file_.read(offsets_.at(static_cast<std::size_t>(chunk - part_.chunk_begin)), {to, bytes});
  if (XXH3_64bits(to, bytes) != entry(chunk).hash)
    fail(file_.path(), fmt::format("chunk {}: its checksum does not match: the disk has lost or changed it", chunk));
}

}  // namespace distzo2
