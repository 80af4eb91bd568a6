// SPDX-License-Identifier: BSD-3-Clause
#include "core/parameter_store.hpp"

#include "core/error.hpp"
#include "core/exec.hpp"
#include "core/panels.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

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

/// Pieces of a tensor's elements that a thread takes at a time.
constexpr std::int64_t piece_elements = 16 * chunk_elements;

/// To nearest.
void round_to(Storage storage, std::byte* to, std::span<const float> values) {
  if (storage == Storage::fp32)
    std::memcpy(to, values.data(), values.size_bytes());
  else
    simd_kernels().store_nearest(reinterpret_cast<std::uint16_t*>(to), values.data(), storage, values.size());
}

}  // namespace

ParameterStore::ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena)
    : ParameterStore(table, rule, arena, resident_placement(table, rule.storage), nullptr) {}

ParameterStore::ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena, Placement placement,
                               BlockStorage* disk, const UnitPipeline::Options& options, ComputeMemory* device)
    : table_(std::move(table)),
      rule_(rule),
      placement_(std::move(placement)),
      disk_(disk),
      device_(device),
      host_(device != nullptr ? device->host() : arena),
      memory_of_unit_(placement_.units.size(), nullptr),
      open_(placement_.units.size(), nullptr),
      chunk_of_tensor_(table_.tensors.size(), 0),
      unit_of_chunk_(placement_.chunks.chunks.size(), 0),
      units_of_tensor_(table_.tensors.size()),
      version_(placement_.chunks.chunks.size(), 0),
      scratch_(std::make_unique<PanelScratch>(HostExec())) {
  scratch_->prepare(piece_elements, 0);
  // Neighbours that stay in one memory share an allocation, so that a tensor is in one piece.
  for (int b = 0; b < std::ssize(table_.blocks); ++b) {
    const int end = placement_.unit_begin[size(b) + 1];
    for (int u = placement_.unit_begin[size(b)], next; u < end; u = next) {
      next = u + 1;
      if (placement_.units[size(u)].tier == Tier::disk) continue;
      while (next < end && placement_.units[size(next)].tier != Tier::disk && on_device(next) == on_device(u)) ++next;
      const Unit& last = placement_.units[size(next - 1)];
      const std::size_t begin = placement_.units[size(u)].offset, bytes = last.offset + last.bytes - begin;
      const std::string label = "distzo2::block_" + std::to_string(b);
      memory_.push_back(on_device(u) ? device_->allocate(label, bytes) : host_.allocate(label, bytes));
      memory_bytes_ += bytes;
      for (int i = u; i < next; ++i)
        memory_of_unit_[size(i)] = memory_.back().get() + (placement_.units[size(i)].offset - begin);
    }
  }
  for (int u = 0; u < std::ssize(placement_.units); ++u) {
    const Unit& unit = placement_.units[size(u)];
    for (int c = unit.chunk_begin; c < unit.chunk_end; ++c) {
      const Chunk& chunk = placement_.chunks.chunks[size(c)];
      unit_of_chunk_[size(c)] = u;
      for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
        std::vector<int>& units = units_of_tensor_[size(i)];
        if (units.empty()) chunk_of_tensor_[size(i)] = c;
        if (units.empty() || units.back() != u) units.push_back(u);
      }
      if (unit.tier == Tier::disk && disk_->holds(c)) version_[size(c)] = disk_->version(c);
    }
  }
  seen_ = version_;
  // Those of a unit that was stored as long ago as can be, and the newest: a step allocates nothing for them.
  constexpr std::uint32_t most_reserved = 1024;
  records_.reserve(std::min(2 * (placement_.write_back_every + rule_.round_every) + 2, most_reserved));
  if (placement_.streams_any()) {
    std::vector<std::byte*> host_units(memory_of_unit_);
    for (std::size_t u = 0; u < host_units.size(); ++u)
      if (placement_.units[u].tier != Tier::host) host_units[u] = nullptr;
    pipeline_ = std::make_unique<UnitPipeline>(placement_, std::move(host_units), disk_, host_, device_, options);
  }
}

ParameterStore::~ParameterStore() = default;

std::size_t ParameterStore::bytes() const {
  std::size_t total = 0;
  for (const Block& b : table_.blocks) total += image_bytes(b, rule_.storage);
  return total;
}

std::size_t ParameterStore::memory_bytes() const {
  const std::size_t copies = device_ != nullptr ? 2 : 1;
  return memory_bytes_ + (pipeline_ ? pipeline_->buffer_bytes() : 0) + copies * gathered_.bytes;
}

Weight ParameterStore::view(int tensor, int chunk, std::int64_t row_begin, std::int64_t row_end, std::byte* data,
                            std::uint32_t version) const {
  const Tensor& t = table_.tensors[size(tensor)];
  const Storage storage = t.matrix ? rule_.storage : Storage::fp32;
  if (version < first_record_ || version > next_)
    throw Error(ExitCode::internal, "tensor " + t.name + " has version " + std::to_string(version) +
                                        ", but records are at hand from " + std::to_string(first_record_) + " to " +
                                        std::to_string(next_));
  Weight w{data,     storage,
           t.matrix, row_end - row_begin,
           t.cols,   static_cast<std::uint64_t>(t.first + row_begin * t.cols),
           &rule_,   std::span<const StepRecord>(records_).subspan(version - first_record_),
           0,        tensor,
           false};
  if (data != nullptr)  // it is where the chunk begins
    w.data += image_offset(table_.blocks[size(t.block)], t, rule_.storage) +
              static_cast<std::size_t>(row_begin * t.cols) * bytes_of(storage) -
              placement_.chunks.chunks[size(chunk)].offset;
  // One-dimensional tensors keep to the rounding points of the matrices beside them: a unit has one version.
  w.absorb = w.pending.size();
  if (rule_.storage != Storage::fp32)
    while (w.absorb > 0 && (w.pending[w.absorb - 1].t + 1) % rule_.round_every != 0) --w.absorb;
  return w;
}

int ParameterStore::end_chunk(int tensor) const {
  const int begin = first_chunk(tensor);
  if (!table_.tensors[size(tensor)].matrix) return begin + 1;
  return tensor + 1 < std::ssize(chunk_of_tensor_) ? first_chunk(tensor + 1)
                                                   : static_cast<int>(placement_.chunks.chunks.size());
}

Weight ParameterStore::rows_of(int tensor, int chunk_begin, int chunk_end) const {
  const Chunk &first = placement_.chunks.chunks[size(chunk_begin)],
              &last = placement_.chunks.chunks[size(chunk_end - 1)];
  const int unit = unit_of_chunk_[size(chunk_begin)];
  std::byte* data = streams(unit) ? open_[size(unit)] : memory_of_unit_[size(unit)];
  if (data != nullptr) data += first.offset - placement_.units[size(unit)].offset;
  const bool matrix = first.matrix();
  return view(tensor, chunk_begin, matrix ? first.row_begin : 0, matrix ? last.row_end : 1, data,
              seen_[size(chunk_begin)]);
}

Weight ParameterStore::weight(int tensor) const {
  return rows_of(tensor, first_chunk(tensor), end_chunk(tensor));
}

Weight ParameterStore::rows_in(int tensor, int unit) const {
  const Unit& u = placement_.units[size(unit)];
  return rows_of(tensor, std::max(u.chunk_begin, first_chunk(tensor)), std::min(u.chunk_end, end_chunk(tensor)));
}

std::int64_t ParameterStore::first_row(int tensor, int unit) const {
  return placement_.chunks.chunks[size(std::max(placement_.units[size(unit)].chunk_begin, first_chunk(tensor)))]
      .row_begin;
}

void ParameterStore::absorbed_chunks(int begin, int end, std::uint32_t version) {
  for (int c = begin; c < end; ++c) {
    seen_[size(c)] = version;
    if (!streams(unit_of_chunk_[size(c)])) version_[size(c)] = version;
  }
}

void ParameterStore::absorbed(int tensor) {
  const int begin = first_chunk(tensor);
  absorbed_chunks(begin, end_chunk(tensor), seen_[size(begin)] + static_cast<std::uint32_t>(weight(tensor).absorb));
}

void ParameterStore::absorbed_rows(int tensor, int unit) {
  const Unit& u = placement_.units[size(unit)];
  const int begin = std::max(u.chunk_begin, first_chunk(tensor));
  absorbed_chunks(begin, std::min(u.chunk_end, end_chunk(tensor)),
                  seen_[size(begin)] + static_cast<std::uint32_t>(rows_in(tensor, unit).absorb));
}

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
  const auto release = [](std::byte* p) { ::operator delete[](p, std::align_val_t(page_bytes)); };
  const std::unique_ptr<std::byte[], decltype(release)> image(
      u.tier == Tier::disk ? new (std::align_val_t(page_bytes)) std::byte[c.bytes] : nullptr, release);
  std::byte* const to = u.tier == Tier::disk ? image.get() : memory_of_unit_[size(unit)] + (c.offset - u.offset);
  std::vector<float> values;
  for (std::int64_t at = 0; at < c.elements; at += piece_elements) {
    values.assign(static_cast<std::size_t>(std::min(piece_elements, c.elements - at)), 0.0F);
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
  std::byte* base = memory_of_unit_[size(unit)] +
                    (placement_.chunks.chunks[size(chunk)].offset - placement_.units[size(unit)].offset);
  const Weight w = view(tensor, chunk, 0, table_.tensors[size(tensor)].rows, base, 0);
  store_values(unit, w.data + offset * static_cast<std::int64_t>(bytes_of(w.storage)), values, w.storage);
}

void ParameterStore::append(StepRecord record) {
  assert(record.t == next_);
  count_samples();
  // Records that every chunk has absorbed are dropped here, between passes, when nobody holds a span of them.
  const std::uint32_t oldest = std::min(*std::min_element(version_.begin(), version_.end()), next_);
  if (oldest > first_record_) {
    records_.erase(records_.begin(), records_.begin() + (oldest - first_record_));
    first_record_ = oldest;
  }
  records_.push_back(std::move(record));
  ++next_;
}

void ParameterStore::sample_rounding_of(const Weight& w) {
  const int unit = units_of(w.tensor).front();
  if (streams(unit) && !in_turn(unit)) return;  // this pass does not store what it rounds
  if (device_ == nullptr) return sample_rounding(rounding_, w, scratch_->thread(0).scratch.data());
  if (w.storage == Storage::fp32 || w.absorb == 0) return;
  constexpr std::size_t slot = rounding_sample * sizeof(std::uint16_t);
  if (!samples_.memory) {
    samples_.memory = device_->host().allocate("distzo2::rounding_samples", table_.tensors.size() * slot);
    samples_.copied = device_->make_event();
    samples_.weights.reserve(table_.tensors.size());
  }
  if (samples_.weights.size() == samples_.weights.capacity()) count_samples();
  Weight copied = w;
  copied.data = samples_.memory.get() + samples_.weights.size() * slot;
  device_->copy(LaneKind::compute, copied.data, w.data,
                std::min(slot, static_cast<std::size_t>(w.rows * w.cols) * sizeof(std::uint16_t)));
  device_->record(LaneKind::compute, *samples_.copied);
  samples_.weights.push_back(copied);
}

void ParameterStore::count_samples() {
  if (samples_.weights.empty()) return;
  device_->finish(*samples_.copied);  // the step's losses have come since: there is nothing to wait for
  for (const Weight& w : samples_.weights) sample_rounding(rounding_, w, scratch_->thread(0).scratch.data());
  samples_.weights.clear();
}

void ParameterStore::apply_pending(const Weight& w) {
  if (w.absorb == 0) return;
  if (device_ != nullptr) {
    if (updates_ == nullptr) throw Error(ExitCode::internal, "nothing applies updates on the device");
    return updates_->apply_pending(w);
  }
  const std::int64_t size = w.rows * w.cols;
  const auto pieces = static_cast<int>(pieces_of(size, piece_elements));
  if (pieces == 1) {  // a region of threads would cost more than a norm's weights
    bring_up_to_date(w, 0, size, scratch_->thread(0));
    return;
  }
  const HostExec exec;
  PanelScratch& scratch = *scratch_;
  const Kokkos::Experimental::UniqueToken<HostExec> token(exec);
  static const std::string name("distzo2::apply_pending");  // a literal would become a string at every call
  Kokkos::parallel_for(name, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, pieces), [&](int i) {
    const int thread = token.acquire();
    const std::int64_t offset = i * piece_elements;
    bring_up_to_date(w, offset, std::min(piece_elements, size - offset), scratch.thread(thread));
    token.release(thread);
  });
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
  std::byte* memory = memory_of_unit_[size(unit)];
  if (memory != nullptr) memory += c.offset - placement_.units[size(unit)].offset;
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
  replay(w, offset, std::ssize(out), out.data(), scratch);
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
  for_each_piece(ids.size(), std::ref(fetch));  // a reference: a copy would be allocated
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
