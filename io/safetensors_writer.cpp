// SPDX-License-Identifier: BSD-3-Clause
#include "io/safetensors_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/simd/kernels.hpp"
#include "io/fail.hpp"

namespace distzo2 {

std::uint64_t bytes_of(const TensorDeclaration& tensor) {
  std::uint64_t bytes = bytes_of(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      broken(fmt::format("tensor \"{}\" is declared with shape {}", tensor.name, shape_text(tensor.shape)));
    }
  }
  return bytes;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorDeclaration> tensors)
    : path_(path), tensors_(std::move(tensors)), file_(path) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t end = 0;
  for (const TensorDeclaration& tensor : tensors_) {
    if (header.contains(tensor.name) || tensor.dtype < DType::f32 || tensor.dtype > DType::f16) {
      broken(fmt::format("{}: tensor \"{}\" is declared twice or as {}", path_.string(), tensor.name,
                         name_of(tensor.dtype)));
    }
    const std::uint64_t begin = end;
    end += bytes_of(tensor);
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data starts at a multiple of 8
  const std::uint64_t length = text.size();
  file_.write(std::as_bytes(std::span(&length, 1)));
  file_.write(text);
  skip_whole();
}

void SafetensorsWriter::skip_whole() {
  while (current_ < tensors_.size() && written_bytes_ == bytes_of(tensors_[current_])) {
    ++current_;
    written_bytes_ = 0;
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const float> values) {
  if (values.empty()) {
    return;
  }
  if (current_ == tensors_.size() || tensors_[current_].name != name ||
      values.size() > (bytes_of(tensors_[current_]) - written_bytes_) / bytes_of(tensors_[current_].dtype)) {
    broken(fmt::format("{}: {} values of tensor \"{}\" out of turn", path_.string(), values.size(), name));
  }
  const DType dtype = tensors_[current_].dtype;
  if (dtype == DType::f32) {
    file_.write(std::as_bytes(values));
  } else {
    const Storage storage = dtype == DType::bf16 ? Storage::bf16 : Storage::fp16;
    std::vector<std::uint16_t> halves(std::min<std::size_t>(values.size(), std::size_t{1} << 18));
    std::vector<float> back(halves.size());
    for (std::size_t i = 0; i < values.size(); i += halves.size()) {
      const std::size_t n = std::min(halves.size(), values.size() - i);
      simd_kernels().store_nearest(halves.data(), values.data() + i, storage, n);
      simd_kernels().load_16(back.data(), halves.data(), storage, n);
      for (std::size_t j = 0; j < n; ++j) {
        if (std::isfinite(values[i + j]) && !std::isfinite(back[j])) {
          fail(fmt::format("{}: tensor \"{}\" holds {}, which {} cannot hold; write it as F32 or BF16", path_.string(),
                           name, values[i + j], name_of(dtype)));
        }
      }
      file_.write(std::as_bytes(std::span(halves.data(), n)));
    }
  }
  written_bytes_ += values.size() * bytes_of(dtype);
  skip_whole();
}

void SafetensorsWriter::finish() {
  if (current_ != tensors_.size()) {
    broken(fmt::format("{}: tensor \"{}\" was not written whole", path_.string(), tensors_[current_].name));
  }
  file_.finish();
}

}  // namespace distzo2
