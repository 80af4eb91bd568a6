// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors_writer.hpp"

namespace distzo2 {

struct CheckpointOptions {
  std::uint64_t max_shard_bytes = 5'000'000'000;  // of tensor data; a larger tensor has a shard of its own
  bool replace = false;                           // an existing model folder; without it an existing folder is refused
};

/// Throws the Error of a writer whose place has something that it may not take: only a model folder, or an empty one,
/// is replaced, whatever a deck or a command line names, and never the base model's.
void check_model_place(const std::filesystem::path& folder, const std::filesystem::path& base, bool replace);

/// Writes a Hugging Face folder beside its place, under a name of its own, and renames it when all is durable: until
/// then what stands at `folder` is not touched, and where it must not exist it is refused (usage) if it does by then.
/// Configuration and tokenizer files are copied from the base model's folder, config.json with its dtype brought up to
/// date. Declare the tensors that the base model's files have: a tied model has no lm_head. A writer that is destroyed
/// before `finish` removes what it wrote.
class CheckpointWriter {
public:
  CheckpointWriter(const std::filesystem::path& folder, const std::filesystem::path& base,
                   const std::vector<TensorDeclaration>& tensors, const CheckpointOptions& options = {});
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// The next elements of tensor `name`; tensors come in the order of their declaration, each in as many pieces as
  /// the caller likes, rounded to nearest even to the declared type.
  void write(std::string_view name, std::span<const float> values);
  /// All tensors must be whole.
  void finish();

private:
  void plan(const std::vector<TensorDeclaration>& tensors, std::uint64_t max_shard_bytes);
  std::string shard_file(std::size_t shard) const;
  void next_shard();
  void write_index() const;
  void copy_base_files() const;

  std::filesystem::path folder_, base_, partial_;
  bool replace_;
  DType dtype_ = DType::f32;  // what config.json states: the first tensor's
  std::vector<std::vector<TensorDeclaration>> shards_;
  std::map<std::string, std::size_t, std::less<>> shard_of_;  // tensor
  std::uint64_t total_bytes_ = 0;
  std::size_t current_ = 0;  // shard of writer_
  std::unique_ptr<SafetensorsWriter> writer_;
  bool finished_ = false;
};

}  // namespace distzo2
