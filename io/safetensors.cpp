// SPDX-License-Identifier: BSD-3-Clause
#include "io/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/simd/kernels.hpp"
#include "io/fail.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is copied as it stands");

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t length_bytes = 8;
constexpr std::size_t max_extents = 16;  // of a shape

struct DTypeRow {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<DTypeRow, 13> dtypes{{{"F64", 8},
                                           {"F32", 4},
                                           {"BF16", 2},
                                           {"F16", 2},
                                           {"I64", 8},
                                           {"I32", 4},
                                           {"I16", 2},
                                           {"I8", 1},
                                           {"U64", 8},
                                           {"U32", 4},
                                           {"U16", 2},
                                           {"U8", 1},
                                           {"BOOL", 1}}};

DType parse_dtype(const JsonObject& entry, const std::string& file, const std::string& tensor) {
  const std::string text = entry.string("dtype");
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i].name == text) {
      return static_cast<DType>(i);
    }
  }
  fail(
      fmt::format("{}: tensor \"{}\" has dtype {}; F32, BF16, F16 and F64 are read (a model quantised to 8 or fewer "
                  "bits has to be converted to one of these first)",
                  file, shown(tensor), shown(text)));
}

/// One entry of the header, its shape checked against its byte range.
TensorInfo parse_tensor(const JsonObject& entry, const std::string& file, const std::string& name,
                        std::uint64_t data_bytes) {
  TensorInfo info;
  info.dtype = parse_dtype(entry, file, name);
  std::uint64_t bytes = bytes_of(info.dtype);
  if (entry.array("shape").size() > max_extents)
    fail(fmt::format("{}: tensor \"{}\" has {} extents; at most {} are accepted", file, shown(name),
                     entry.array("shape").size(), max_extents));
  for (const json& extent : entry.array("shape")) {
    if (!extent.is_number_unsigned()) {
      fail(fmt::format("{}: tensor \"{}\" has shape {}; extents are integers of at least 0", file, name,
                       shown(entry.value("shape"))));
    }
    const auto n = extent.get<std::uint64_t>();
    if (__builtin_mul_overflow(bytes, n, &bytes) || n > INT64_MAX || bytes > INT64_MAX) {
      fail(fmt::format("{}: tensor \"{}\" has shape {}, more than 2^63 bytes; the file has {} bytes of data", file,
                       name, shown(entry.value("shape")), data_bytes));
    }
    info.shape.push_back(static_cast<std::int64_t>(n));
  }
  info.elements = static_cast<std::int64_t>(bytes / bytes_of(info.dtype));

  const json& range = entry.array("data_offsets");
  if (range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned()) {
    fail(fmt::format("{}: tensor \"{}\" has data_offsets {}; [begin, end] was expected", file, name, shown(range)));
  }
  info.begin_bytes = range[0].get<std::uint64_t>();
  info.end_bytes = range[1].get<std::uint64_t>();
  if (info.begin_bytes > info.end_bytes || info.end_bytes > data_bytes) {
    fail(fmt::format(
        "{}: tensor \"{}\" has data_offsets {}; begin <= end <= {} (the bytes of data in the file, which may "
        "be cut off) was expected",
        file, name, shown(range), data_bytes));
  }
  if (info.end_bytes - info.begin_bytes != bytes) {
    fail(fmt::format("{}: tensor \"{}\" of dtype {} and shape {} takes {} bytes, but its data_offsets {} hold {}", file,
                     name, name_of(info.dtype), shape_text(info.shape), bytes, shown(range),
                     info.end_bytes - info.begin_bytes));
  }
  return info;
}

/// Overlaps, holes and trailing bytes are refused: the ranges, in their order, cover the data exactly.
void check_cover(const std::map<std::string, TensorInfo, std::less<>>& tensors, const std::string& file,
                 std::uint64_t data_bytes) {
  std::vector<const std::pair<const std::string, TensorInfo>*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin_bytes, a->second.end_bytes) <
           std::pair(b->second.begin_bytes, b->second.end_bytes);
  });
  std::uint64_t end = 0;
  for (const auto* tensor : order) {
    const TensorInfo& info = tensor->second;
    if (info.begin_bytes != end) {
      fail(fmt::format("{}: tensor \"{}\" starts at byte {} of the data, {} byte {} where the one before it ends", file,
                       tensor->first, info.begin_bytes, info.begin_bytes < end ? "before" : "beyond", end));
    }
    end = info.end_bytes;
  }
  if (end != data_bytes) {
    fail(fmt::format("{}: the tensors end at byte {} of the data, but the file has {} bytes of it", file, end,
                     data_bytes));
  }
}

}  // namespace

std::string_view name_of(DType dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].name;
}
std::size_t bytes_of(DType dtype) {
  return dtypes[static_cast<std::size_t>(dtype)].bytes;
}
std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : file_(path) {
  const std::string file = path.string();
  const std::uint64_t size = file_.size();
  if (size < length_bytes) {
    fail(fmt::format("{}: {} bytes; a safetensors file starts with 8 bytes that state the length of its header", file,
                     size));
  }
  std::uint64_t header_bytes = 0;
  file_.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > max_header_bytes) {
    fail(fmt::format("{}: states a header of {} bytes; at most {} are accepted (is it a safetensors file?)", file,
                     header_bytes, max_header_bytes));
  }
  if (header_bytes > size - length_bytes) {
    fail(fmt::format("{}: states a header of {} bytes, but only {} bytes follow (the file may be cut off)", file,
                     header_bytes, size - length_bytes));
  }
  std::string text(header_bytes, '\0');
  file_.read(length_bytes, std::as_writable_bytes(std::span(text)));
  data_begin_ = length_bytes + header_bytes;
  const std::uint64_t data_bytes = size - data_begin_;

  const json header = parse_json(text, file + " (header)", {.max_bytes = max_header_bytes, .max_depth = 8});
  const JsonObject root(header, file + " (header)");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      const JsonObject metadata = root.object(name);
      for (const auto& [key, value] : metadata.raw().items()) {
        static_cast<void>(metadata.string(key));
      }
      continue;
    }
    tensors_.emplace(name, parse_tensor(root.object(name), file, name, data_bytes));
  }
  check_cover(tensors_, file, data_bytes);
}

const TensorInfo& SafetensorsFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    broken(fmt::format("{}: asked for tensor \"{}\", which it does not hold", path().string(), name));
  }
  return it->second;
}

std::span<const std::byte> SafetensorsFile::first_bytes(std::string_view name, std::span<std::byte> to) const {
  const TensorInfo& info = find(name);
  to = to.first(std::min<std::size_t>(to.size(), info.end_bytes - info.begin_bytes));
  file_.read(data_begin_ + info.begin_bytes, to);
  return to;
}

void SafetensorsFile::read(std::string_view name, std::int64_t offset, std::span<float> out) const {
  const TensorInfo& info = find(name);
  if (offset < 0 || offset > info.elements || std::cmp_greater(out.size(), info.elements - offset)) {
    broken(fmt::format("{}: elements {} + {} of tensor \"{}\" of shape {}", path().string(), offset, out.size(), name,
                       shape_text(info.shape)));
  }
  if (info.dtype > DType::f16) {
    fail(fmt::format("{}: tensor \"{}\" has dtype {}; F32, BF16, F16 and F64 can be read as weights", path().string(),
                     name, name_of(info.dtype)));
  }
  const std::size_t element_bytes = bytes_of(info.dtype);
  std::uint64_t at = data_begin_ + info.begin_bytes + static_cast<std::uint64_t>(offset) * element_bytes;
  if (info.dtype == DType::f32) {
    file_.read(at, std::as_writable_bytes(out));
    return;
  }
  constexpr std::size_t piece = std::size_t{1} << 15;
  std::vector<std::byte> raw(std::min(piece, out.size()) * element_bytes);
  for (std::size_t i = 0; i < out.size(); i += piece) {
    const auto to = out.subspan(i, std::min(piece, out.size() - i));
    const auto from = std::span(raw).first(to.size() * element_bytes);
    file_.read(at, from);
    at += from.size();
    if (info.dtype == DType::f64) {
      const auto* doubles = reinterpret_cast<const double*>(from.data());
      std::transform(doubles, doubles + to.size(), to.begin(), [](double v) { return static_cast<float>(v); });
    } else {
      simd_kernels().load_16(to.data(), reinterpret_cast<const std::uint16_t*>(from.data()),
                             info.dtype == DType::bf16 ? Storage::bf16 : Storage::fp16, to.size());
    }
  }
}

}  // namespace distzo2
