// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_manifest.hpp"

#include "io/fail.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t manifest_format = 1;
constexpr std::size_t most_manifest_bytes = std::size_t{16} << 20;  // a part a rank, about a hundred bytes each

std::string digest_text(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::uint64_t digest_at(const JsonObject& object, const std::string& key) {
  const std::string text = object.string(key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc() || end != text.data() + text.size())
    object.refuse(key, "16 hexadecimal digits were expected");
  return value;
}

/// Of all but the checksum, keys sorted, without blanks: what the values say and not how they are written.
std::uint64_t checksum_of(nlohmann::json manifest) {
  manifest.erase("checksum");
  const std::string text = manifest.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return XXH3_64bits(text.data(), text.size());
}

/// The file's object, its checksum found right.
nlohmann::json checked_json(const fs::path& path) {
  nlohmann::json json = read_json_file(path, {.max_bytes = most_manifest_bytes, .max_depth = 8});
  const JsonObject object(json, path.string());
  if (object.integer("format") != manifest_format)
    object.refuse("format", fmt::format("this program reads format {}", manifest_format));
  if (digest_at(object, "checksum") != checksum_of(json))
    fail(path, "its checksum does not match: the disk has changed it");
  return json;
}

constexpr std::int64_t most_steps = std::numeric_limits<std::uint32_t>::max();

}  // namespace

fs::path manifest_file(const fs::path& folder) {
  return folder / "manifest.json";
}

void write_manifest(const fs::path& folder, const CheckpointManifest& m) {
  Json parts = Json::array();
  for (const CheckpointPart& p : m.parts)
    parts.push_back({{"file", part_file_name(p.chunk_begin)},
                     {"chunks", {p.chunk_begin, p.chunk_end}},
                     {"bytes", p.bytes},
                     {"index", digest_text(p.index_hash)}});
  Json json{{"format", manifest_format},
            {"step", m.step},
            {"history", digest_text(m.history)},
            {"theta0_digest", digest_text(m.theta0_digest)},
            {"theta_digest", m.theta_digest ? Json(digest_text(*m.theta_digest)) : Json()},
            {"storage", name_of(m.storage)},
            {"chunk_table", digest_text(m.chunk_table)},
            {"parts", parts}};
  json["checksum"] = digest_text(checksum_of(nlohmann::json(json)));
  write_file(manifest_file(folder), json.dump(2) + "\n");
}

CheckpointManifest read_manifest(const fs::path& folder, const ChunkTable& table, Storage storage) {
  const nlohmann::json json = checked_json(manifest_file(folder));
  const JsonObject object(json, manifest_file(folder).string());
  CheckpointManifest m;
  m.step = static_cast<std::uint32_t>(object.integer("step", 0, most_steps));
  m.history = digest_at(object, "history");
  m.theta0_digest = digest_at(object, "theta0_digest");
  if (object.has("theta_digest")) m.theta_digest = digest_at(object, "theta_digest");
  m.storage = storage;
  m.chunk_table = chunk_table_digest(table);
  if (object.string("storage") != name_of(storage))
    object.refuse("storage", fmt::format("{} was expected: it is of another storage precision", name_of(storage)));
  if (digest_at(object, "chunk_table") != m.chunk_table)
    object.refuse("chunk_table",
                  fmt::format("{} was expected: it is of another shape of model", digest_text(m.chunk_table)));
  const auto chunks = static_cast<std::int64_t>(table.chunks.size());
  int next = 0;
  for (const nlohmann::json& entry : object.array("parts")) {
    const JsonObject part(entry, object.file(), fmt::format("parts[{}]", m.parts.size()));
    const nlohmann::json& range = part.array("chunks");
    if (range.size() != 2 || !range[0].is_number_integer() || !range[1].is_number_integer() || range[0] != next ||
        range[1] <= next || range[1] > chunks)
      part.refuse("chunks", fmt::format("a range was expected that begins with {} and ends by {}", next, chunks));
    next = range[1].get<int>();
    m.parts.push_back(
        {range[0].get<int>(), next, static_cast<std::uint64_t>(part.integer("bytes", 0)), digest_at(part, "index")});
  }
  if (next != chunks) object.refuse("parts", fmt::format("they hold {} of {} chunks", next, chunks));
  return m;
}

std::uint32_t checkpoint_step(const fs::path& folder) {
  const nlohmann::json json = checked_json(manifest_file(folder));
  return static_cast<std::uint32_t>(JsonObject(json, manifest_file(folder).string()).integer("step", 0, most_steps));
}

}  // namespace distzo2
