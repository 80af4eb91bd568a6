// SPDX-License-Identifier: BSD-3-Clause
#include "io/safetensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/simd/kernels.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian and is copied as it stands");

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t max_header_bytes = 100'000'000;
constexpr std::size_t length_bytes = 8;
constexpr std::size_t release_step_bytes = std::size_t{1} << 20;  // reads at least as large let their pages go

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

[[noreturn]] void fail(const std::string& message) {
  throw Error(ExitCode::file, message);
}
[[noreturn]] void broken(const std::string& message) {
  throw Error(ExitCode::internal, message);
}

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
                  file, tensor, text));
}

/// One entry of the header, its shape checked against its byte range.
TensorInfo parse_tensor(const JsonObject& entry, const std::string& file, const std::string& name,
                        std::uint64_t data_bytes) {
  TensorInfo info;
  info.dtype = parse_dtype(entry, file, name);
  std::uint64_t bytes = bytes_of(info.dtype);
  for (const json& extent : entry.array("shape")) {
    if (!extent.is_number_unsigned()) {
      fail(fmt::format("{}: tensor \"{}\" has shape {}; extents are integers of at least 0", file, name,
                       entry.value("shape").dump()));
    }
    const auto n = extent.get<std::uint64_t>();
    if (__builtin_mul_overflow(bytes, n, &bytes) || n > INT64_MAX || bytes > INT64_MAX) {
      fail(fmt::format("{}: tensor \"{}\" has shape {}, more than 2^63 bytes; the file has {} bytes of data", file,
                       name, entry.value("shape").dump(), data_bytes));
    }
    info.shape.push_back(static_cast<std::int64_t>(n));
  }
  info.elements = static_cast<std::int64_t>(bytes / bytes_of(info.dtype));

  const json& range = entry.array("data_offsets");
  if (range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned()) {
    fail(fmt::format("{}: tensor \"{}\" has data_offsets {}; [begin, end] was expected", file, name, range.dump()));
  }
  info.begin_bytes = range[0].get<std::uint64_t>();
  info.end_bytes = range[1].get<std::uint64_t>();
  if (info.begin_bytes > info.end_bytes || info.end_bytes > data_bytes) {
    fail(fmt::format(
        "{}: tensor \"{}\" has data_offsets {}; begin <= end <= {} (the bytes of data in the file, which may "
        "be cut off) was expected",
        file, name, range.dump(), data_bytes));
  }
  if (info.end_bytes - info.begin_bytes != bytes) {
    fail(fmt::format("{}: tensor \"{}\" of dtype {} and shape {} takes {} bytes, but its data_offsets {} hold {}", file,
                     name, name_of(info.dtype), shape_text(info.shape), bytes, range.dump(),
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

std::shared_ptr<const std::byte> map_file(const fs::path& path, std::size_t& size) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fail(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  const std::shared_ptr<const void> closing(nullptr, [fd](const void*) { static_cast<void>(::close(fd)); });
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(fmt::format("{}: not a regular file", path.string()));
  }
  size = static_cast<std::size_t>(status.st_size);
  if (size < length_bytes) {
    fail(fmt::format("{}: {} bytes; a safetensors file starts with 8 bytes that state the length of its header",
                     path.string(), size));
  }
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) {
    fail(fmt::format("{}: cannot be mapped: {}", path.string(), std::strerror(errno)));
  }
  return {static_cast<const std::byte*>(address),
          [size](const std::byte* p) { static_cast<void>(::munmap(const_cast<std::byte*>(p), size)); }};
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

SafetensorsFile::SafetensorsFile(const fs::path& path) : path_(path) {
  std::size_t size = 0;
  map_ = map_file(path, size);
  const std::string file = path.string();

  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, map_.get(), length_bytes);
  if (header_bytes > max_header_bytes) {
    fail(fmt::format("{}: states a header of {} bytes; at most {} are accepted (is it a safetensors file?)", file,
                     header_bytes, max_header_bytes));
  }
  if (header_bytes > size - length_bytes) {
    fail(fmt::format("{}: states a header of {} bytes, but only {} bytes follow (the file may be cut off)", file,
                     header_bytes, size - length_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(map_.get()) + length_bytes, header_bytes);
  data_ = std::span(map_.get(), size).subspan(length_bytes + header_bytes);

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
    tensors_.emplace(name, parse_tensor(root.object(name), file, name, data_.size()));
  }
  check_cover(tensors_, file, data_.size());
}

const TensorInfo& SafetensorsFile::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) {
    broken(fmt::format("{}: asked for tensor \"{}\", which it does not hold", path_.string(), name));
  }
  return it->second;
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const TensorInfo& info = find(name);
  return data_.subspan(info.begin_bytes, info.end_bytes - info.begin_bytes);
}

void SafetensorsFile::read(std::string_view name, std::int64_t offset, std::span<float> out) const {
  const TensorInfo& info = find(name);
  if (offset < 0 || offset > info.elements || std::cmp_greater(out.size(), info.elements - offset)) {
    broken(fmt::format("{}: elements {} + {} of tensor \"{}\" of shape {}", path_.string(), offset, out.size(), name,
                       shape_text(info.shape)));
  }
  if (info.dtype > DType::f16) {
    fail(fmt::format("{}: tensor \"{}\" has dtype {}; F32, BF16, F16 and F64 can be read as weights", path_.string(),
                     name, name_of(info.dtype)));
  }
  const std::size_t element_bytes = bytes_of(info.dtype);
  const auto source = bytes(name).subspan(static_cast<std::size_t>(offset) * element_bytes, out.size() * element_bytes);

  // Tensors may start at odd addresses: copied in pieces, never cast.
  constexpr std::size_t piece = 4096;
  std::array<std::uint16_t, piece> halves;
  std::array<double, piece> doubles;
  std::size_t released = 0;
  for (std::size_t i = 0; i < out.size(); i += piece) {
    const std::size_t n = std::min(piece, out.size() - i);
    const std::byte* from = source.data() + i * element_bytes;
    float* to = out.data() + i;
    if (info.dtype == DType::f32) {
      std::memcpy(to, from, n * sizeof(float));
    } else if (info.dtype == DType::f64) {
      std::memcpy(doubles.data(), from, n * sizeof(double));
      std::transform(doubles.begin(), doubles.begin() + static_cast<std::ptrdiff_t>(n), to,
                     [](double v) { return static_cast<float>(v); });
    } else {
      std::memcpy(halves.data(), from, n * sizeof(std::uint16_t));
      simd_kernels().load_16(to, halves.data(), info.dtype == DType::bf16 ? Storage::bf16 : Storage::fp16, n);
    }
    const std::size_t done = (i + n) * element_bytes;
    if (done - released >= release_step_bytes || (released > 0 && done == source.size())) {
      release_bytes(source.subspan(released, done - released));
      released = done;
    }
  }
}

void SafetensorsFile::release(std::string_view name) const {
  release_bytes(bytes(name));
}

void SafetensorsFile::release_bytes(std::span<const std::byte> bytes) const {
  if (bytes.empty()) {
    return;
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin =
      reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;  // a neighbour's part comes back when read
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  if (::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) != 0) {
    broken(fmt::format("{}: madvise: {}", path_.string(), std::strerror(errno)));
  }
}

}  // namespace distzo2
