// SPDX-License-Identifier: BSD-3-Clause
// Values into the store, before its first record, and out of it, records applied.
#include "core/panels.hpp"
#include "core/parameter_store.hpp"
#include "core/pieces.hpp"
#include "core/tool_hooks.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <string>

namespace distzo2 {
namespace {

/// This thread's memory for a long read; a thread that never asks allocates nothing, not even to be tidied up at its
/// end.
std::span<std::byte> long_piece(std::size_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return std::span(memory).first(bytes);
}

/// To nearest.
void round_to(Storage storage, std::byte* to, std::span<const float> values) {
  if (storage == Storage::fp32)
    std::memcpy(to, values.data(), values.size_bytes());
  else
    simd_kernels().store_nearest(reinterpret_cast<std::uint16_t*>(to), values.data(), storage, values.size());
}

}  // namespace

void ParameterStore::import_chunk(int chunk, std::span<const float> values) {
  import_chunk(chunk, [&](std::int64_t begin, std::span<float> out) {
    std::ranges::copy(values.subspan(static_cast<std::size_t>(begin), out.size()), out.begin());
  });
}

void ParameterStore::import_chunk(int chunk,
                                  const std::function<void(std::int64_t begin, std::span<float> out)>& fill) {
  assert(next_ == 0 && records_.empty());
  const Chunk& c = placement_.chunks.chunks[size(chunk)];
  const int unit = unit_of_chunk_[size(chunk)];
  const Unit& u = placement_.units[size(unit)];
  const Storage storage = c.matrix() ? rule_.storage : Storage::fp32;
  if (u.tier == Tier::disk && !writes_disk()) return disk_->write(chunk, chunk + 1, nullptr, 0);
  const auto release = [](std::byte* p) { ::operator delete[](p, std::align_val_t(page_bytes)); };
  const std::unique_ptr<std::byte[], decltype(release)> image(
      u.tier == Tier::disk ? new (std::align_val_t(page_bytes)) std::byte[c.bytes] : nullptr, release);
  std::byte* const to = u.tier == Tier::disk ? image.get() : memory_of_chunk(chunk);
  std::vector<float> values;
  const auto [begin, end] = own_part(unit, c.first, c.elements);
  for (std::int64_t at = begin; at < end; at += piece_elements) {
    values.assign(static_cast<std::size_t>(std::min(piece_elements, end - at)), 0.0F);
    fill(at, values);
    store_values(unit, to + static_cast<std::size_t>(at) * bytes_of(storage), values, storage);
  }
  if (u.tier == Tier::disk) disk_->write(chunk, chunk + 1, image.get(), 0);
}

void ParameterStore::store_values(int unit, std::byte* to, std::span<const float> values, Storage storage) {
  if (on_device(unit)) {  // rounded here, copied there
    thread_local std::vector<std::byte> image;
    image.resize(values.size() * bytes_of(storage));
    round_to(storage, image.data(), values);
    return device_->put(to, image.data(), image.size());
  }
  round_to(storage, to, values);
}

void ParameterStore::import_values(int tensor, std::int64_t offset, std::span<const float> values) {
  assert(next_ == 0 && records_.empty());
  const int chunk = first_chunk(tensor), unit = unit_of_chunk_[size(chunk)];
  const Weight w = view(tensor, chunk, 0, table_.tensors[size(tensor)].rows, memory_of_chunk(chunk), 0);
  const auto [begin, end] = own_part(unit, table_.tensors[size(tensor)].first + offset, std::ssize(values));
  store_values(unit, w.data + (offset + begin) * static_cast<std::int64_t>(bytes_of(w.storage)),
               values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)), w.storage);
}

void ParameterStore::read(int tensor, std::int64_t offset, std::span<float> out) const {
  const Tensor& t = table_.tensors[size(tensor)];
  const std::size_t element = bytes_of(t.matrix ? rule_.storage : Storage::fp32);
  const Chunk& first = placement_.chunks.chunks[size(first_chunk(tensor))];
  // All chunks of a matrix but its last have as many elements.
  const std::int64_t step = t.matrix ? first.elements : t.size();
  for (std::int64_t done = 0, n = 0; done < std::ssize(out); done += n) {
    const std::int64_t at = offset + done;
    const int chunk = first_chunk(tensor) + static_cast<int>(at / step);
    n = std::min(step - at % step, std::ssize(out) - done);
    read_in_chunk(tensor, chunk, at, out.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(n)), element);
  }
}

void ParameterStore::read_in_chunk(int tensor, int chunk, std::int64_t offset, std::span<float> out,
                                   std::size_t element) const {
  std::array<std::byte, std::size_t{1} << 16> short_piece;  // a row that a step looks up: nothing is allocated
  float scratch[chunk_elements];
  const Tensor& t = table_.tensors[size(tensor)];
  const Chunk& c = placement_.chunks.chunks[size(chunk)];
  const int unit = unit_of_chunk_[size(chunk)];
  if (pipeline_) pipeline_->wait_written(unit);
  std::byte* const memory = memory_of_chunk(chunk);
  const std::int64_t row_begin = t.matrix ? c.row_begin : 0;
  Weight w = view(tensor, chunk, row_begin, t.matrix ? c.row_end : 1, memory, version_[size(chunk)]);
  offset -= row_begin * t.cols;
  std::span<std::byte> fetched;
  if (memory == nullptr || on_device(unit)) {
    const std::size_t bytes = out.size() * element;
    fetched = bytes > short_piece.size() ? long_piece(bytes) : std::span(short_piece).first(bytes);
  }
  if (on_device(unit)) {
    device_->get(fetched.data(), w.data + static_cast<std::size_t>(offset) * element, fetched.size());
    w.data = fetched.data();
    w.first += static_cast<std::uint64_t>(offset);
    offset = 0;
  } else if (memory == nullptr) {
    const std::size_t in_chunk = image_offset(table_.blocks[size(t.block)], t, rule_.storage) +
                                 static_cast<std::size_t>(row_begin * t.cols + offset) * element - c.offset;
    disk_->read_part(chunk, in_chunk, fetched);
    w.data = fetched.data();
    w.first += static_cast<std::uint64_t>(offset);
    offset = 0;
  }
  read_up_to_date(w, offset, std::ssize(out), out.data(), scratch);
}

void ParameterStore::reserve_rows(int tensor, std::size_t count) {
  const std::size_t bytes = count * static_cast<std::size_t>(table_.tensors[size(tensor)].cols) * sizeof(float);
  if (gathered_.bytes >= bytes) return;
  gathered_ = {};  // the smaller ones go before the larger ones come
  gathered_.host = host_.allocate("distzo2::gathered_rows", bytes);
  if (device_ != nullptr) gathered_.device = device_->allocate("distzo2::gathered_rows", bytes);
  gathered_.bytes = bytes;
}

Weight ParameterStore::gather_rows(int tensor, std::span<const std::int32_t> ids) {
  const Tensor& t = table_.tensors[size(tensor)];
  const auto cols = static_cast<std::size_t>(t.cols);
  reserve_rows(tensor, ids.size());
  const std::span<float> rows(reinterpret_cast<float*>(gathered_.host.get()), ids.size() * cols);
  // Each id is read once, whichever tokens have it.
  by_id_.resize(ids.size());
  std::iota(by_id_.begin(), by_id_.end(), 0);
  const auto id_of = [&](int token) { return ids[size(token)]; };
  std::ranges::sort(by_id_, {}, id_of);
  const auto row = [&](int token) { return rows.subspan(size(token) * cols, cols); };
  const auto fetch = [&](std::size_t i) {
    const std::int32_t id = id_of(by_id_[i]);
    if (i > 0 && id_of(by_id_[i - 1]) == id) return;
    read(tensor, id * t.cols, row(by_id_[i]));
    for (std::size_t j = i + 1; j < ids.size() && id_of(by_id_[j]) == id; ++j)
      std::ranges::copy(row(by_id_[i]), row(by_id_[j]).begin());
  };
  {
    static const std::string label("distzo2::look_up_rows");  // a literal would become a string at every call
    const ToolKernel seen(label);
    for_each_piece(ids.size(), std::ref(fetch));  // a reference: a copy would be allocated
  }
  if (reads_) slices_->meet();  // the rank that writes may not overwrite what another still looks up
  Weight w = view(tensor, first_chunk(tensor), 0, t.rows, nullptr, next_);
  w.data = gathered_.host.get();
  if (device_ != nullptr) {  // the next call comes after this step's losses: the copy is done by then
    device_->copy(LaneKind::compute, gathered_.device.get(), w.data, rows.size_bytes());
    w.data = gathered_.device.get();
  }
  w.storage = Storage::fp32;
  w.gathered = true;
  return w;
}

}  // namespace distzo2
