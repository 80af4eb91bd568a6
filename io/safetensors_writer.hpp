// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/output_file.hpp"
#include "io/safetensors.hpp"

namespace distzo2 {

/// A tensor to be written: f32, bf16 or f16.
struct TensorDeclaration {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// Number of bytes of its data; an overflow is an Error(internal).
std::uint64_t bytes_of(const TensorDeclaration& tensor);

/// Writes one safetensors file: the header at once, then the data of all tensors in the order of their declaration.
class SafetensorsWriter {
public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorDeclaration> tensors);

  /// The next elements of tensor `name`, which must be the one whose turn it is; rounded to nearest even to its type.
  /// A finite value that its type cannot hold is Error(file) naming the tensor.
  void write(std::string_view name, std::span<const float> values);
  /// All tensors must be whole. Makes the file durable.
  void finish();

private:
  void skip_whole();

  std::filesystem::path path_;
  std::vector<TensorDeclaration> tensors_;
  OutputFile file_;
  std::size_t current_ = 0;
  std::uint64_t written_bytes_ = 0;  // of the current tensor
};

}  // namespace distzo2
