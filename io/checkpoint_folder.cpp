// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_folder.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>

#include "io/fail.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "model.";
constexpr std::size_t sampled_bytes = 4096;

bool has_pickled_weights(const fs::path& folder) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("pytorch_model") && name.ends_with(".bin")) {
      return true;
    }
  }
  return false;
}

[[noreturn]] void refuse_without_weights(const fs::path& folder) {
  if (has_pickled_weights(folder)) {
    fail(fmt::format(
        "{0}: only pickled weights (pytorch_model*.bin), which are never loaded because a pickle can run code; "
        "convert them to safetensors with: scripts/convert_checkpoint {0}",
        folder.string()));
  }
  fail(fmt::format("{}: no weights; model.safetensors, or model.safetensors.index.json with its shards, was expected",
                   folder.string()));
}

/// A shard is a plain file name: an index must not lead out of its folder.
void check_shard_name(const std::string& shard, const JsonObject& map, const std::string& tensor) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                     shard.find_first_of("/\\") == std::string::npos && shard.find('\0') == std::string::npos;
  if (!plain) {
    map.refuse(tensor, "the plain name of a file in the model's folder was expected");
  }
}

}  // namespace

CheckpointReader::CheckpointReader(const fs::path& folder) : folder_(folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) {
    fail(fmt::format("{}: no such folder; a model is a Hugging Face folder with config.json and safetensors files",
                     folder.string()));
  }
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single, ec)) {
    paths_ = {single};
    files_.push_back(std::make_unique<SafetensorsFile>(single));
    for (const auto& [name, info] : files_.back()->tensors()) {
      entries_.emplace(name, Entry{files_.back().get(), &info});
    }
  } else if (fs::exists(index, ec)) {
    open_shards(index);
  } else {
    refuse_without_weights(folder);
  }
}

void CheckpointReader::open_shards(const fs::path& index) {
  const nlohmann::json json = read_json_file(index, {.max_depth = 8});
  const JsonObject map = JsonObject(json, index.string()).object("weight_map");
  paths_ = {index};
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, value] : map.raw().items()) {
    const std::string shard = map.string(tensor);
    check_shard_name(shard, map, tensor);
    auto it = opened.find(shard);
    if (it == opened.end()) {
      std::error_code ec;
      if (!fs::exists(folder_ / shard, ec)) {
        fail(fmt::format("{}: shard \"{}\", which holds tensor \"{}\", is missing from the folder", index.string(),
                         shard, tensor));
      }
      paths_.push_back(folder_ / shard);
      files_.push_back(std::make_unique<SafetensorsFile>(folder_ / shard));
      it = opened.emplace(shard, files_.back().get()).first;
    }
    const auto info = it->second->tensors().find(tensor);
    if (info == it->second->tensors().end()) {
      fail(
          fmt::format("{}: tensor \"{}\" is not in \"{}\", where the index says it is", index.string(), tensor, shard));
    }
    entries_.emplace(tensor, Entry{it->second, &info->second});
  }
}

CheckpointReader::Entries::const_iterator CheckpointReader::find(std::string_view name) const {
  const auto exact = entries_.find(name);
  if (exact != entries_.end()) {
    return exact;
  }
  if (name.starts_with(prefix)) {
    return entries_.find(name.substr(prefix.size()));
  }
  return entries_.find(std::string(prefix) + std::string(name));
}

CheckpointReader::Entries::const_iterator CheckpointReader::get(std::string_view name) const {
  const auto it = find(name);
  if (it == entries_.end()) {
    fail(fmt::format("{}: tensor \"{}\" is missing; none of its safetensors files holds it", folder_.string(), name));
  }
  return it;
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) {
    names.push_back(name);
  }
  return names;
}

const std::string& CheckpointReader::stored_name(std::string_view name) const {
  return get(name)->first;
}

const TensorInfo& CheckpointReader::info(std::string_view name) const {
  return *get(name)->second.info;
}

void CheckpointReader::expect(std::string_view name, std::span<const std::int64_t> shape) const {
  const auto& [stored, entry] = *get(name);
  if (!std::ranges::equal(entry.info->shape, shape)) {
    fail(fmt::format("{}: tensor \"{}\" has shape {}, but config.json asks for {}", entry.file->path().string(), stored,
                     shape_text(entry.info->shape), shape_text(shape)));
  }
  entry.file->read(stored, 0, {});  // refuses a type that is no float
}

void CheckpointReader::read(std::string_view name, std::int64_t offset, std::span<float> out) const {
  const auto& [stored, entry] = *get(name);
  entry.file->read(stored, offset, out);
}

void CheckpointReader::check_finite(std::string_view name, std::int64_t offset, std::span<const float> values) const {
  const std::int64_t i = first_non_finite(values);
  if (i >= 0) {
    const auto& [stored, entry] = *get(name);
    fail(
        fmt::format("{}: element {} of tensor \"{}\" is {}; weights have to be finite, or the deck must set "
                    "\"model/allow non-finite weights\" to true",
                    entry.file->path().string(), offset + i, stored, values[static_cast<std::size_t>(i)]));
  }
}

std::uint64_t CheckpointReader::digest() const {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&state](const void* data, std::size_t bytes) {
    const std::uint64_t length = bytes;  // so that neighbours cannot run into each other
    XXH3_64bits_update(&state, &length, sizeof(length));
    XXH3_64bits_update(&state, data, bytes);
  };
  std::array<std::byte, sampled_bytes> sample;
  for (const auto& [name, entry] : entries_) {
    const std::string_view dtype = name_of(entry.info->dtype);
    const auto bytes = entry.file->first_bytes(name, sample);
    add(name.data(), name.size());
    add(dtype.data(), dtype.size());
    add(entry.info->shape.data(), entry.info->shape.size() * sizeof(std::int64_t));
    add(bytes.data(), bytes.size());
  }
  return XXH3_64bits_digest(&state);
}

std::int64_t first_non_finite(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7F800000U;
  constexpr std::size_t piece = 1024;  // counted without a branch, searched only where something was counted
  for (std::size_t i = 0; i < values.size(); i += piece) {
    const auto part = values.subspan(i, std::min(piece, values.size() - i));
    std::uint32_t bad = 0;
    for (const float v : part) {
      bad += (std::bit_cast<std::uint32_t>(v) & exponent) == exponent ? 1U : 0U;
    }
    for (std::size_t j = 0; bad != 0; ++j) {
      if ((std::bit_cast<std::uint32_t>(part[j]) & exponent) == exponent) {
        return static_cast<std::int64_t>(i + j);
      }
    }
  }
  return -1;
}

}  // namespace distzo2
