// SPDX-License-Identifier: BSD-3-Clause
// How a store is made, found, checked and removed.
#include "io/block_file.hpp"

#include "io/fail.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* data_name = "chunks.bin";
constexpr const char* header_name = "store.json";
constexpr const char* partial_name = "store.json.partial";
constexpr std::int64_t format_version = 3;
constexpr std::size_t most_header_bytes = 65536;
constexpr std::uint64_t sequence_end = std::uint64_t{1} << 63;  // no store comes near: those after it fit 64 bits
constexpr const char* remedy = "free some, or name a folder with more room by the deck's key memory/scratch folder";
constexpr const char* other_folder = "or name another folder by the deck's key memory/scratch folder";

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

/// The folder, made where it was not there; true where it was made.
bool make_folder(const fs::path& folder) {
  std::error_code ec;
  const bool made = fs::create_directories(folder, ec);
  std::error_code none;
  if (ec && fs::exists(folder, none))
    fail(fmt::format("{}: is no folder; move it away, {}", folder.string(), other_folder));
  if (ec && fs::is_symlink(folder, none))
    fail(fmt::format("{}: is a link to {}, which is not there; make that folder, {}", folder.string(),
                     fs::read_symlink(folder, none).string(), other_folder));
  if (ec) fail(fmt::format("{}: cannot be created: {}", folder.string(), ec.message()));
  return made;
}

void remove_file(const fs::path& path) {
  std::error_code ec;
  fs::remove(path, ec);
  if (ec) fail(fmt::format("{}: cannot be removed: {}", path.string(), ec.message()));
}

bool has_header(const fs::path& folder) try {
  return read_json_file(folder / header_name, {.max_bytes = most_header_bytes}).contains("chunk_table");
} catch (const Error&) {
  return false;
}

/// Whether the files there are a store's, and not a user's own of these names. A store has its data file before its
/// header, and loses it after that.
bool is_store(const fs::path& folder) {
  return has_header(folder) || begins_with_slots(folder / data_name);
}

/// A slot that may be a chunk's.
struct Candidate {
  SlotHeader header;
  std::int64_t slot = 0;
};

/// By chunk, the later version and of equal ones the later write first.
bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.header.chunk != b.header.chunk) return a.header.chunk < b.header.chunk;
  if (a.header.version != b.header.version) return a.header.version > b.header.version;
  return a.header.sequence > b.header.sequence;
}

}  // namespace

std::uint64_t BlockFile::disk_bytes(const ChunkTable& table, int spare_slots) {
  return (table.chunks.size() + static_cast<std::uint64_t>(spare_slots)) * (page_bytes + table.slot_bytes);
}

fs::path BlockFile::data_file(const fs::path& folder) {
  return folder / data_name;
}

FileRoom BlockFile::room(const fs::path& folder, const ChunkTable& table, int spare_slots) {
  return file_room(folder / data_name, disk_bytes(table, spare_slots));
}

bool BlockFile::stands_in(const fs::path& folder) {
  std::error_code none;
  return fs::is_regular_file(folder / data_name, none) && is_store(folder);
}

std::uint64_t BlockFile::bytes_in(const fs::path& folder) {
  std::error_code none;
  const std::uintmax_t bytes = fs::file_size(folder / data_name, none);
  return none ? 0 : bytes;
}

void BlockFile::check_room(const fs::path& folder, const FileRoom& room) {
  if (!room.enough()) refuse_for_space(folder / data_name, room, remedy);
}

std::uint64_t BlockFile::memory_bytes(const BlockFileOptions& options) {
  return SlotFile::memory_bytes(options.threads + options.callers);
}

BlockFile::BlockFile(const fs::path& folder, const ChunkTable& table, Storage storage, const BlockFileOptions& options)
    : folder_(folder),
      table_(table),
      identity_(options.identity),
      table_digest_(chunk_table_digest(table)),
      store_(identity_ ^ table_digest_),
      made_folder_(make_folder(folder)),
      temporary_(options.temporary),
      file_(folder / data_name, table.slot_bytes, options.direct, options.threads + options.callers),
      pool_(options.threads),
      before_write_(options.before_write),
      history_(options.history),
      stored_(options.stored),
      entries_(table.chunks.size()) {
  if (options.spare_slots < 1) throw Error(ExitCode::internal, "a store needs at least one spare slot");
  if (!file_.file().lock()) fail(fmt::format("{}: another process uses this store", folder.string()));
  const std::uint64_t slots = table.chunks.size() + static_cast<std::uint64_t>(options.spare_slots);
  std::error_code none;
  const bool found = !temporary_ && fs::exists(folder / header_name, none);
  if (!found && !begins_with_slots(folder / data_name))
    fail(fmt::format("{}: is in a store's place and is none; move it away, {}", (folder / data_name).string(),
                     other_folder));
  if (temporary_) remove_files(folder);
  if (found) check_identity(storage);
  if (found && file_.file().size() > 0)
    open(slots, options);
  else
    create(slots, storage);
  reserved_.reserve(free_.capacity());
  replaced_.reserve(free_.capacity());
  syncing_.reserve(free_.capacity());
  for (int c = 0; stored_ && c < std::ssize(entries_); ++c)
    if (holds(c)) stored_(c, version(c), static_cast<std::uint64_t>(held(c).slot));
}

void BlockFile::create(std::uint64_t slots, Storage storage) {
  try {
    file_.file().truncate(0);  // what a creation that did not end left behind
    file_.file().allocate(slots * file_.stride(), remedy);
  } catch (...) {
    std::error_code ignored;  // an error is under way already
    if (file_.file().created()) fs::remove(folder_ / data_name, ignored);
    if (made_folder_) fs::remove(folder_, ignored);
    throw;
  }
  free_.reserve(slots);
  for (std::uint64_t i = slots; i-- > 0;) free_.push_back(static_cast<std::int64_t>(i));
  if (temporary_) return;
  const nlohmann::ordered_json header = {{"format", format_version},       {"storage", name_of(storage)},
                                         {"identity", hex(identity_)},     {"chunk_table", hex(table_digest_)},
                                         {"chunks", table_.chunks.size()}, {"slot_bytes", table_.slot_bytes}};
  write_file(folder_ / partial_name, header.dump(2) + "\n");
  std::error_code ec;
  fs::rename(folder_ / partial_name, folder_ / header_name, ec);
  if (ec) fail(fmt::format("{}: cannot be renamed into place: {}", (folder_ / header_name).string(), ec.message()));
  sync_folder(folder_);
}

void BlockFile::check_identity(Storage storage) const try {
  const fs::path path = folder_ / header_name;
  const nlohmann::json json = read_json_file(path, {.max_bytes = most_header_bytes});
  const JsonObject header(json, path.string());
  if (header.integer("format") != format_version)
    header.refuse("format", fmt::format("this program reads format {}", format_version));
  const std::array<std::array<std::string, 3>, 3> expected{{{"storage", name_of(storage), "storage precision"},
                                                            {"identity", hex(identity_), "model or run"},
                                                            {"chunk_table", hex(table_digest_), "shape of model"}}};
  for (const auto& [key, value, what] : expected)
    if (header.string(key) != value)
      header.refuse(key, fmt::format("{} was expected: the store is of another {}", value, what));
} catch (const Error& error) {
  throw Error(error.code(),
              fmt::format("{}; remove {}, of which nothing is lost: a store is made again from the base model and the "
                          "run's trajectory. Or name another folder by the deck's key memory/scratch folder",
                          error.what(), folder_.string()));
}

void BlockFile::open(std::uint64_t slots, const BlockFileOptions& options) {
  // 1. As many slots as this run needs.
  const std::uint64_t found = file_.slots();
  if (found > 4 * slots + 1024)  // another run may have had more spare ones
    fail(
        fmt::format("{}: room for {} chunks, where the store needs {}: it is no store of this program's; remove {}, of "
                    "which nothing is lost, {}",
                    file_.file().path().string(), found, slots, folder_.string(), other_folder));
  slots = std::max(slots, found);
  if (slots * file_.stride() > file_.file().size()) file_.file().allocate(slots * file_.stride(), remedy);
  // 2. Whole headers of this store, and those of versions that nothing covers or that other records led to.
  std::vector<Candidate> candidates;
  std::vector<std::int64_t> uncovered;
  pool_.run(static_cast<int>(found), [&](int i) {
    const std::optional<SlotHeader> header = file_.header(static_cast<std::uint64_t>(i));
    if (!header || header->store != store_ || header->sequence >= sequence_end || header->chunk >= entries_.size() ||
        header->bytes != chunk_at(static_cast<int>(header->chunk)).bytes)
      return;
    const std::lock_guard lock(mutex_);
    sequence_ = std::max(sequence_, header->sequence + 1);
    if (header->version > options.covered || header->history != history_of(header->version))
      uncovered.push_back(i);
    else
      candidates.push_back({*header, i});
  });
  // 3. Erased for good: another continuation may reach the same version with other bits. What a killed process wrote
  // becomes durable before an older version of it counts as free.
  pool_.run(static_cast<int>(uncovered.size()),
            [&](int i) { file_.erase_header(static_cast<std::uint64_t>(uncovered[static_cast<std::size_t>(i)])); });
  file_.file().sync();
  // 4. Of each chunk the latest version whose payload checks.
  std::ranges::sort(candidates, comes_before);
  std::vector<std::size_t> begin;
  std::uint64_t total = 0, done = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (i == 0 || candidates[i].header.chunk != candidates[i - 1].header.chunk) {
      begin.push_back(i);
      total += candidates[i].header.bytes;
    }
  begin.push_back(candidates.size());
  pool_.run(static_cast<int>(begin.size()) - 1, [&](int g) {
    const auto group = static_cast<std::size_t>(g);
    for (std::size_t i = begin[group]; i < begin[group + 1]; ++i) {
      const auto& [header, slot] = candidates[i];
      if (file_.hash(static_cast<std::uint64_t>(slot), header.bytes) != header.payload_hash) continue;
      entries_[header.chunk] = {slot, header.version, header.payload_hash};
      break;
    }
    const std::lock_guard lock(mutex_);
    done += candidates[begin[group]].header.bytes;
    if (options.progress) options.progress(done, total);
  });
  // 5. Every other slot is free.
  std::vector<bool> used(slots, false);
  for (const Entry& e : entries_)
    if (e.slot >= 0) used[static_cast<std::size_t>(e.slot)] = true;
  free_.reserve(slots);
  for (std::uint64_t i = slots; i-- > 0;)
    if (!used[i]) free_.push_back(static_cast<std::int64_t>(i));
}

void BlockFile::remove_files(const fs::path& folder) {
  std::error_code ignored;  // nothing is there, or something of the user's is in it
  if (!fs::is_directory(folder, ignored) || !is_store(folder)) return;
  for (const char* name : {header_name, partial_name, data_name}) remove_file(folder / name);
  fs::remove(folder, ignored);
}

}  // namespace distzo2
