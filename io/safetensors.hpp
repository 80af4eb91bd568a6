// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/ranged_file.hpp"

namespace distzo2 {

/// Element types of a safetensors file that is accepted; only the first four can be read as float.
enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };

std::string_view name_of(DType dtype);  // as the file states it: "BF16"
std::size_t bytes_of(DType dtype);

struct TensorInfo {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;               // empty for a scalar
  std::int64_t elements = 1;                     // product of `shape`
  std::uint64_t begin_bytes = 0, end_bytes = 0;  // in the file's data
};

std::string shape_text(std::span<const std::int64_t> shape);  // "[2, 3]"

/// One safetensors file, read range by range. The whole header is checked before anything of it is believed: its
/// length, its JSON, every shape against its byte range, and that the ranges cover the data exactly. Refusals are
/// Error(file) naming file and tensor.
class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }

  /// out[i] = element offset + i of the tensor (row-major) as float. `name` is one of tensors(). F64 is rounded to
  /// float. Threads may read at once.
  void read(std::string_view name, std::int64_t offset, std::span<float> out) const;
  /// The tensor's first bytes as they stand in the file, `to.size()` of them or all.
  std::span<const std::byte> first_bytes(std::string_view name, std::span<std::byte> to) const;

private:
  const TensorInfo& find(std::string_view name) const;

  RangedFile file_;
  std::uint64_t data_begin_ = 0;  // after the header
  std::map<std::string, TensorInfo, std::less<>> tensors_;
};

}  // namespace distzo2
