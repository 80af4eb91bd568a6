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

#include "io/safetensors.hpp"

namespace distzo2 {

/// The weights of a Hugging Face folder: `model.safetensors`, or the shards that `model.safetensors.index.json` names.
/// Where a name is not in the files as asked, it is found with or without a leading "model." (older OPT files).
/// Refusals are Error(file) naming file and tensor; a folder with only pickled weights is refused with the command that
/// converts it.
class CheckpointReader {
public:
  explicit CheckpointReader(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<std::filesystem::path>& files() const { return paths_; }  // that it reads, no others of the folder
  std::vector<std::string> names() const;                                     // as in the files, sorted
  const std::string& stored_name(std::string_view name) const;                // as in the files
  const TensorInfo& info(std::string_view name) const;
  /// Throws unless the tensor is there, of a type that can be read as float, and of this shape.
  void expect(std::string_view name, std::span<const std::int64_t> shape) const;

  /// out[i] = element offset + i of the tensor (row-major) as float.
  void read(std::string_view name, std::int64_t offset, std::span<float> out) const;
  /// Throws naming the tensor and the element where one of `values`, read from `offset`, is NaN or infinite.
  void check_finite(std::string_view name, std::int64_t offset, std::span<const float> values) const;

  /// A cheap identity of the model: XXH3-64 over every tensor's name, dtype, shape and first 4 KiB, in the order of
  /// names. Independent of sharding and of the header's layout.
  std::uint64_t digest() const;

private:
  struct Entry {
    const SafetensorsFile* file = nullptr;
    const TensorInfo* info = nullptr;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void open_shards(const std::filesystem::path& index);
  Entries::const_iterator find(std::string_view name) const;
  Entries::const_iterator get(std::string_view name) const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  Entries entries_;
};

/// Index of the first NaN or infinity, or -1.
std::int64_t first_non_finite(std::span<const float> values);

}  // namespace distzo2
