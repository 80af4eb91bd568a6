// SPDX-License-Identifier: BSD-3-Clause
#include "io/block_file.hpp"

#include "io/fail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace distzo2 {
namespace {

/// Where writes are buffered, this much is handed to the disk at once, so that it does not fill memory.
constexpr std::uint64_t most_unsynced_bytes = std::uint64_t{256} << 20;

}  // namespace

void fail_check(const std::string& chunk) {
  throw Error(ExitCode::file, chunk + ": its checksum does not match: the disk has lost or changed it");
}

void BlockFile::check_range(int begin, int end) const {
  if (begin < 0 || begin > end || end > std::ssize(entries_) ||
      (begin < end && chunk_at(begin).block != chunk_at(end - 1).block))
    throw Error(ExitCode::internal, fmt::format("chunks {} to {} are not of one block", begin, end));
}

void BlockFile::check_present() const {
  if (!temporary_) file_.file().check_present();
}

std::string BlockFile::describe(int chunk) const {
  const Chunk& c = chunk_at(chunk);
  return fmt::format("{}: chunk {} (block {}, {})", file_.file().path().string(), chunk, c.block,
                     c.matrix() ? fmt::format("rows {} to {} of its matrix {}", c.row_begin, c.row_end, c.tensor_begin)
                                : "one-dimensional tensors");
}

BlockFile::Entry BlockFile::held(int chunk) const {
  const std::lock_guard lock(mutex_);
  const Entry entry = entries_.at(static_cast<std::size_t>(chunk));
  if (entry.slot < 0) throw Error(ExitCode::internal, describe(chunk) + " is read but was never written");
  return entry;
}

bool BlockFile::holds(int chunk) const {
  const std::lock_guard lock(mutex_);
  return entries_.at(static_cast<std::size_t>(chunk)).slot >= 0;
}

std::uint32_t BlockFile::version(int chunk) const {
  return held(chunk).version;
}

void BlockFile::read(int begin, int end, std::byte* image) {
  check_range(begin, end);
  check_present();
  pool_.run(end - begin, [&](int i) {
    const int chunk = begin + i;
    const Chunk& c = chunk_at(chunk);
    const Entry entry = held(chunk);
    const std::uint64_t hash =
        file_.read(static_cast<std::uint64_t>(entry.slot), c.bytes, image + (c.offset - chunk_at(begin).offset));
    if (hash != entry.hash) fail_check(describe(chunk));
  });
}

void BlockFile::read_part(int chunk, std::size_t offset, std::span<std::byte> to) {
  check_range(chunk, chunk + 1);
  if (offset > chunk_at(chunk).bytes || to.size() > chunk_at(chunk).bytes - offset)
    throw Error(ExitCode::internal, describe(chunk) + " is read beyond its end");
  const Entry entry = held(chunk);
  const std::optional<SlotHeader> header = file_.read_part(static_cast<std::uint64_t>(entry.slot), offset, to);
  if (!header || header->payload_hash != entry.hash) fail_check(describe(chunk));
}

void BlockFile::write(int begin, int end, const std::byte* image, std::uint32_t version) {
  check_range(begin, end);
  check_present();
  const std::lock_guard one_writer(write_mutex_);
  if (before_write_) before_write_(version);
  const std::uint64_t history = history_of(version);
  for (int next = begin; next < end;) {
    const std::size_t skipped = chunk_at(next).offset - chunk_at(begin).offset;
    next += write_some(next, end, image + skipped, version, history);
  }
}

/// As many of the chunks as there are free slots for; returns their number.
int BlockFile::write_some(int begin, int end, const std::byte* image, std::uint32_t version, std::uint64_t history) {
  const auto wanted = static_cast<std::size_t>(end - begin);
  bool must_sync = false;
  {
    const std::lock_guard lock(mutex_);
    must_sync = free_.size() < wanted || (!direct() && unsynced_bytes_ > most_unsynced_bytes);
  }
  if (must_sync) sync();
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    for (int i = begin; i < end; ++i)
      if (const Entry& e = entries_[static_cast<std::size_t>(i)]; e.slot >= 0 && e.version > version)
        throw Error(ExitCode::internal,
                    describe(i) + fmt::format(" has version {} and is given {}", e.version, version));
    const std::size_t n = std::min(wanted, free_.size());
    if (n == 0) throw Error(ExitCode::internal, folder_.string() + ": the store has no spare slots");
    reserved_.assign(free_.end() - static_cast<std::ptrdiff_t>(n), free_.end());
    free_.resize(free_.size() - n);
    sequence = sequence_;
    sequence_ += n;
  }
  const auto write_one = [&](int i) {
    const int chunk = begin + i;
    const Chunk& c = chunk_at(chunk);
    std::int64_t& slot = reserved_[static_cast<std::size_t>(i)];
    SlotHeader header{.store = store_,
                      .chunk = static_cast<std::uint32_t>(chunk),
                      .version = version,
                      .sequence = sequence + static_cast<std::uint64_t>(i),
                      .history = history,
                      .bytes = c.bytes};
    const auto written = static_cast<std::uint64_t>(slot);
    file_.write(written, header, image + (c.offset - chunk_at(begin).offset));
    if (stored_) stored_(chunk, version, written);
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[static_cast<std::size_t>(chunk)];
    if (entry.slot >= 0) replaced_.push_back(entry.slot);
    entry = {std::exchange(slot, -1), version, header.payload_hash};
    unsynced_bytes_ += c.bytes;
  };
  const int n = static_cast<int>(reserved_.size());
  try {
    pool_.run(n, write_one);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(reserved_, std::back_inserter(free_), [](std::int64_t slot) { return slot >= 0; });
    throw;
  }
  return n;
}

void BlockFile::sync() {
  const std::lock_guard one_sync(sync_mutex_);
  check_present();
  {
    const std::lock_guard lock(mutex_);
    if (sync_failed_) fail(file_.file().path().string() + ": an earlier sync of it failed: it cannot be relied on");
    syncing_.swap(replaced_);  // what replaced these has been written: it is part of this sync
    unsynced_bytes_ = 0;
  }
  try {
    file_.file().sync();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    sync_failed_ = true;  // the system reports a lost write once and then forgets it
    throw;
  }
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), syncing_.begin(), syncing_.end());
  syncing_.clear();
}

}  // namespace distzo2
