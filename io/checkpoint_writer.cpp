// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/fail.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

namespace {

namespace fs = std::filesystem;

/// What makes a folder loadable beside its weights and config.json; each is copied where the base model has it.
constexpr std::array<const char*, 10> copied_files{"generation_config.json",
                                                   "tokenizer.json",
                                                   "tokenizer_config.json",
                                                   "tokenizer.model",
                                                   "special_tokens_map.json",
                                                   "added_tokens.json",
                                                   "vocab.json",
                                                   "merges.txt",
                                                   "chat_template.jinja",
                                                   "chat_template.json"};
constexpr std::size_t max_copied_bytes = std::size_t{256} << 20;

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

fs::path without_slash(const fs::path& folder) {
  const fs::path normal = folder.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

/// config.json with the order of its keys kept; the key that states the type is "dtype" in newer files.
std::string config_with_dtype(const fs::path& path, DType dtype) {
  const std::string text = read_text_file(path, max_copied_bytes);
  const nlohmann::json checked = parse_json(text, path.string());
  if (!checked.is_object()) {
    fail(fmt::format("{}: an object {{...}} was expected", path.string()));
  }
  auto config = nlohmann::ordered_json::parse(text);
  const bool newer = config.contains("dtype");
  if (newer) {
    config["dtype"] = torch_name(dtype);
  }
  if (!newer || config.contains("torch_dtype")) {
    config["torch_dtype"] = torch_name(dtype);
  }
  return config.dump(2) + "\n";
}

}  // namespace

void check_model_place(const fs::path& folder, const fs::path& base, bool replace) {
  std::error_code ec;
  if (!fs::exists(folder, ec)) {
    return;
  }
  if (fs::equivalent(folder, base, ec)) {
    fail(fmt::format("{}: is the base model's own folder; name another one", folder.string()));
  }
  if (!fs::is_directory(folder, ec)) {
    fail(fmt::format("{}: exists and is no folder; name another one", folder.string()));
  }
  if (fs::is_empty(folder, ec)) {
    return;
  }
  if (!replace) {
    throw Error(ExitCode::usage, fmt::format("{}: exists already; name another folder or remove it", folder.string()));
  }
  if (!fs::exists(folder / "config.json", ec)) {
    fail(fmt::format("{}: exists and is no model folder (it has no config.json); name another one", folder.string()));
  }
}

CheckpointWriter::CheckpointWriter(const fs::path& folder, const fs::path& base,
                                   const std::vector<TensorDeclaration>& tensors, const CheckpointOptions& options)
    : folder_(without_slash(folder)), base_(base), replace_(options.replace) {
  if (tensors.empty()) {
    broken("a model folder without tensors");
  }
  dtype_ = tensors.front().dtype;
  check_model_place(folder_, base_, options.replace);
  plan(tensors, options.max_shard_bytes);
  partial_ = make_folder_beside(folder_);
  try {
    copy_base_files();  // first, so that a base folder that lacks something is seen before the long part
    writer_ = std::make_unique<SafetensorsWriter>(partial_ / shard_file(0), shards_[0]);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
    throw;
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!finished_) {
    std::error_code ignored;  // an error is under way already
    fs::remove_all(partial_, ignored);
  }
}

void CheckpointWriter::plan(const std::vector<TensorDeclaration>& tensors, std::uint64_t max_shard_bytes) {
  std::uint64_t shard_bytes = 0;
  for (const TensorDeclaration& tensor : tensors) {
    const std::uint64_t bytes = bytes_of(tensor);
    if (shards_.empty() || (shard_bytes > 0 && bytes > max_shard_bytes - std::min(shard_bytes, max_shard_bytes))) {
      shards_.emplace_back();
      shard_bytes = 0;
    }
    shards_.back().push_back(tensor);
    shard_bytes += bytes;
    total_bytes_ += bytes;
    if (!shard_of_.emplace(tensor.name, shards_.size() - 1).second) {
      broken(fmt::format("tensor \"{}\" is declared twice", tensor.name));
    }
  }
}

std::string CheckpointWriter::shard_file(std::size_t shard) const {
  return shards_.size() == 1 ? "model.safetensors"
                             : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards_.size());
}

void CheckpointWriter::next_shard() {
  writer_->finish();
  ++current_;
  writer_ = std::make_unique<SafetensorsWriter>(partial_ / shard_file(current_), shards_[current_]);
}

void CheckpointWriter::write(std::string_view name, std::span<const float> values) {
  const auto it = shard_of_.find(name);
  if (it == shard_of_.end()) {
    broken(fmt::format("tensor \"{}\" was not declared", name));
  }
  while (current_ < it->second) {
    next_shard();
  }
  writer_->write(name, values);
}

void CheckpointWriter::write_index() const {
  nlohmann::json map = nlohmann::json::object();
  for (const auto& [tensor, shard] : shard_of_) {
    map[tensor] = shard_file(shard);
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total_bytes_}}}, {"weight_map", map}};
  write_file(partial_ / "model.safetensors.index.json", index.dump(2) + "\n");
}

void CheckpointWriter::copy_base_files() const {
  write_file(partial_ / "config.json", config_with_dtype(base_ / "config.json", dtype_));
  for (const char* name : copied_files) {
    std::error_code ec;
    if (fs::exists(base_ / name, ec)) {
      write_file(partial_ / name, read_text_file(base_ / name, max_copied_bytes));
    }
  }
}

void CheckpointWriter::finish() {
  while (current_ + 1 < shards_.size()) {
    next_shard();  // shards of zero-size tensors alone; one that lacks data throws
  }
  writer_->finish();
  if (shards_.size() > 1) {
    write_index();
  }
  sync_folder(partial_);
  if (replace_) {
    replace_folder(partial_, folder_);
  } else if (!publish_folder(partial_, folder_)) {
    throw Error(ExitCode::usage, fmt::format("{}: exists already: something was written there meanwhile; name another "
                                             "folder or remove it",
                                             folder_.string()));
  }
  finished_ = true;
}

}  // namespace distzo2
