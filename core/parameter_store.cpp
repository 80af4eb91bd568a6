// SPDX-License-Identifier: BSD-3-Clause
#include "core/parameter_store.hpp"

#include "core/error.hpp"
#include "core/exec.hpp"
#include "core/panels.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace distzo2 {

ParameterStore::ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena)
    : ParameterStore(table, rule, arena, resident_placement(table, rule.storage), nullptr) {}

ParameterStore::ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena, Placement placement,
                               BlockStorage* disk, const UnitPipeline::Options& options, ComputeMemory* device,
                               NodeMemory* node)
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
  if (node != nullptr) {
    if (device_ != nullptr) throw Error(ExitCode::internal, "parameters on a device are not in the node's memory");
    slices_ = std::make_unique<NodeSlices>(*node, static_cast<int>(placement_.units.size()));
    sums_ = std::make_unique<NodeSums>(*node);
  }
  // Neighbours that stay in one memory share an allocation, so that a tensor is in one piece.
  for (int b = 0; b < std::ssize(table_.blocks); ++b) {
    const int end = placement_.unit_begin[size(b) + 1];
    for (int u = placement_.unit_begin[size(b)], next; u < end; u = next) {
      next = u + 1;
      if (placement_.units[size(u)].tier == Tier::disk) continue;
      while (next < end && placement_.units[size(next)].tier != Tier::disk && on_device(next) == on_device(u) &&
             shares(next) == shares(u))
        ++next;
      const Unit& last = placement_.units[size(next - 1)];
      const std::size_t begin = placement_.units[size(u)].offset, bytes = last.offset + last.bytes - begin;
      const std::string label = "distzo2::block_" + std::to_string(b);
      memory_.push_back(on_device(u) ? device_->allocate(label, bytes)
                        : shares(u)  ? node->allocate(label, bytes)
                                     : host_.allocate(label, bytes));
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
    if (slices_ && NodeReads::slot_bytes(placement_) > 0)
      reads_ = std::make_unique<NodeReads>(*node, placement_, *disk_);
    pipeline_ = std::make_unique<UnitPipeline>(placement_, std::move(host_units), reads_ ? reads_.get() : disk_, host_,
                                               device_, options);
  }
}

ParameterStore::~ParameterStore() {
  if (reads_) reads_->end_waits();  // lanes that read ahead
}

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
  w.absorb = updated(version) - version;
  return w;
}

int ParameterStore::end_chunk(int tensor) const {
  const int begin = first_chunk(tensor);
  if (!table_.tensors[size(tensor)].matrix) return begin + 1;
  return tensor + 1 < std::ssize(chunk_of_tensor_) ? first_chunk(tensor + 1)
                                                   : static_cast<int>(placement_.chunks.chunks.size());
}

std::byte* ParameterStore::memory_of_chunk(int chunk) const {
  const int unit = unit_of_chunk_[size(chunk)];
  std::byte* const memory = memory_of_unit_[size(unit)];
  if (memory == nullptr) return nullptr;
  return memory + (placement_.chunks.chunks[size(chunk)].offset - placement_.units[size(unit)].offset);
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
    const int unit = unit_of_chunk_[size(c)];
    if (!streams(unit) || shares(unit)) version_[size(c)] = version;
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

}  // namespace distzo2
