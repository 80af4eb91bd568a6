// SPDX-License-Identifier: BSD-3-Clause
// A checkpoint's files: manifest.json, and behind a zero byte the chunks of its one part, as many bytes as they have,
// and the part's index; pages are filled up with zeros.
#include "io/checkpoint_manifest.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/support/file_bytes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointPartReader::Entry;

const ChunkTable& checkpoint_table() {
  static const ChunkTable table = table_of({{100, 300}, {64}});
  return table;
}

int chunks_of_checkpoint() {
  return static_cast<int>(checkpoint_table().chunks.size());
}

std::string part_of(std::string_view input) {
  std::string bytes;
  const auto add = [&](std::size_t n) {
    const std::size_t at = bytes.size();
    bytes.resize(at + round_up_to_page(n), '\0');
    const std::string_view some = input.substr(0, n);
    std::ranges::copy(some, bytes.begin() + static_cast<std::ptrdiff_t>(at));
    input.remove_prefix(some.size());
  };
  for (const Chunk& c : checkpoint_table().chunks) add(c.bytes);
  add(checkpoint_table().chunks.size() * sizeof(Entry));
  return bytes;
}

/// Hashes in its index that fit its chunks; that of the index.
std::uint64_t seal_part(std::string& part) {
  const std::size_t index = checkpoint_table().chunks.size() * page_bytes;
  for (std::size_t c = 0; c < checkpoint_table().chunks.size(); ++c) {
    const std::uint64_t hash = XXH3_64bits(part.data() + c * page_bytes, checkpoint_table().chunks[c].bytes);
    std::memcpy(part.data() + index + c * sizeof(Entry) + offsetof(Entry, hash), &hash, sizeof hash);
  }
  return XXH3_64bits(part.data() + index, checkpoint_table().chunks.size() * sizeof(Entry));
}

/// The same manifest with a checksum that fits.
std::string sealed_manifest(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::string(text);
  json.erase("checksum");
  const std::string values = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  json["checksum"] = fmt::format("{:016x}", XXH3_64bits(values.data(), values.size()));
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

auto what_is_said(const CheckpointManifest& m) {
  std::vector<std::tuple<int, int, std::uint64_t, std::uint64_t>> parts;
  for (const CheckpointPart& p : m.parts) parts.emplace_back(p.chunk_begin, p.chunk_end, p.bytes, p.index_hash);
  return std::tuple(m.step, m.history, m.theta0_digest, m.theta_digest, m.storage, m.chunk_table, parts);
}

CheckpointManifest manifest_in(const fs::path& folder) {
  return read_manifest(folder, checkpoint_table(), Storage::bf16);
}

/// Every chunk is in one part and can be read, and what was read of the manifest is the same when written.
void use_checkpoint(const fs::path& folder) {
  const CheckpointManifest m = manifest_in(folder);
  if (checkpoint_step(folder) != m.step) found("a manifest of two steps");
  int next = 0;
  for (const CheckpointPart& part : m.parts) {
    if (part.chunk_begin != next || part.chunk_end <= next) found("parts that do not follow each other");
    next = part.chunk_end;
  }
  if (next != chunks_of_checkpoint()) found("a chunk is in no part");
  write_manifest(folder, m);
  if (what_is_said(manifest_in(folder)) != what_is_said(m)) found("what was read is another when written");
  for (const CheckpointPart& part : m.parts) {
    const CheckpointPartReader reader(folder, part, checkpoint_table());
    for (int c = part.chunk_begin; c < part.chunk_end; ++c) {
      const Image image(checkpoint_table().chunks[static_cast<std::size_t>(c)].bytes, 0);
      static_cast<void>(reader.version(c));
      reader.read(c, image.data);
    }
  }
}

bool read_checkpoint(std::string_view input) {
  static const fs::path folder = fuzz_folder("checkpoint");
  const std::vector<std::string_view> parts = parts_of(input, 2);
  std::string part = part_of(parts.size() > 1 ? parts[1] : std::string_view());
  const auto use = [&](std::string_view manifest) {
    write_bytes(manifest_file(folder), manifest);
    return accepted([&] { use_checkpoint(folder); });
  };
  write_bytes(folder / part_file_name(0), part);
  const bool taken = use(parts[0]);
  use(sealed_manifest(parts[0]));
  // Chunks whose hashes fit belong to a checkpoint, whatever they hold.
  CheckpointManifest good;
  good.storage = Storage::bf16;
  good.chunk_table = chunk_table_digest(checkpoint_table());
  good.parts = {
      {0, chunks_of_checkpoint(), part_bytes(checkpoint_table(), 0, chunks_of_checkpoint()), seal_part(part)}};
  write_bytes(folder / part_file_name(0), part);
  write_manifest(folder, good);
  if (!accepted([&] { use_checkpoint(folder); })) found("a checkpoint whose hashes fit is refused");
  return taken;
}

const RegisteredTarget checkpoint_target("checkpoint", read_checkpoint);

}  // namespace
}  // namespace distzo2
