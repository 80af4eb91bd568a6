// SPDX-License-Identifier: BSD-3-Clause
// Records into the stored values: appended, applied where a pass has the values at hand or over the whole store, and
// what rounding makes of them.
#include "core/error.hpp"
#include "core/exec.hpp"
#include "core/panels.hpp"
#include "core/parameter_store.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace distzo2 {
namespace {

// Made as the program starts: the first step that comes to it may be a late one, and a step allocates nothing. A
// literal would become a string at every call.
const std::string apply_pending_label("distzo2::apply_pending");

}  // namespace

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
  if (streams(unit) && !shares(unit) && !in_turn(unit)) return;  // this pass does not store what it rounds
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
  apply_pending(w, 0, w.rows * w.cols);
}

void ParameterStore::apply_pending(const Weight& w, std::int64_t begin, std::int64_t end) {
  if (w.absorb == 0 || begin == end) return;
  const auto pieces = static_cast<int>(pieces_of(end - begin, piece_elements));
  if (pieces == 1) {  // a region of threads would cost more than a norm's weights
    bring_up_to_date(w, begin, end - begin, scratch_->thread(0));
    return;
  }
  const HostExec exec;
  PanelScratch& scratch = *scratch_;
  const Kokkos::Experimental::UniqueToken<HostExec> token(exec);
  Kokkos::parallel_for(apply_pending_label, Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, pieces),
                       [&](int i) {
                         const int thread = token.acquire();
                         const std::int64_t offset = begin + i * piece_elements;
                         bring_up_to_date(w, offset, std::min(piece_elements, end - offset), scratch.thread(thread));
                         token.release(thread);
                       });
}

void ParameterStore::apply_pending_matrix(int tensor) {
  const Weight w = weight(tensor);
  sample_rounding_of(w);
  apply_pending(w);
  absorbed(tensor);
}

void ParameterStore::apply_pending_vectors(int block) {
  const Block& b = table_.blocks[size(block)];
  int vectors = b.tensor_begin;
  while (vectors < b.tensor_end && table_.tensors[size(vectors)].matrix) ++vectors;
  if (vectors == b.tensor_end) return;
  // They are one chunk: all of them, and then its version.
  for (int i = vectors; i < b.tensor_end; ++i) apply_pending(weight(i));
  absorbed(vectors);
}

void ParameterStore::apply_pending() {
  update_shared();
  if (pipeline_) {
    order_.clear();
    for (int u = 0; u < std::ssize(placement_.units); ++u)
      if (streams(u)) order_.push_back(u);
    pipeline_->begin_pass(order_, next_, units_fetched_ahead(forward_order_));
  }
  for (int u = 0; u < std::ssize(placement_.units); ++u) {
    open(u);
    const Unit& unit = placement_.units[size(u)];
    for (int c = unit.chunk_begin; c < unit.chunk_end; ++c) {
      const Chunk& chunk = placement_.chunks.chunks[size(c)];
      std::size_t absorb = 0;
      for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
        const Weight w = rows_of(i, c, c + 1);
        if (chunk.row_begin == 0) sample_rounding_of(w);
        apply_pending(w);
        absorb = w.absorb;
      }
      absorbed_chunks(c, c + 1, seen_[size(c)] + static_cast<std::uint32_t>(absorb));
    }
    close(u, true);
  }
  if (pipeline_) pipeline_->end_pass();
}

void ParameterStore::replay_chunk(int chunk, std::uint32_t version) {
  const Chunk& c = placement_.chunks.chunks[size(chunk)];
  std::vector<std::byte> image(c.bytes);
  disk_->read(chunk, chunk + 1, image.data());
  ThreadPanels buffers;
  buffers.theta.resize(chunk_elements);
  buffers.scratch.resize(chunk_elements);
  for (int i = c.tensor_begin; i < c.tensor_end; ++i) {
    const Tensor& t = table_.tensors[size(i)];
    Weight w =
        view(i, chunk, c.matrix() ? c.row_begin : 0, c.matrix() ? c.row_end : 1, image.data(), version_[size(chunk)]);
    w.absorb = version - version_[size(chunk)];
    w.pending = w.pending.first(w.absorb);
    const std::int64_t elements = w.rows * t.cols;
    for (std::int64_t at = 0; at < elements; at += chunk_elements)
      bring_up_to_date(w, at, std::min(chunk_elements, elements - at), buffers);
  }
  disk_->write(chunk, chunk + 1, image.data(), version);
  version_[size(chunk)] = seen_[size(chunk)] = version;
}

void ParameterStore::level_versions() {
  if (pipeline_) pipeline_->forget_fetched();
  level_memory();
  struct Late {
    int chunk;
    std::uint32_t version;
  };
  std::vector<Late> late;
  for (const Unit& u : placement_.units) {
    if (u.tier != Tier::disk) continue;
    const auto begin = version_.begin() + u.chunk_begin, end = version_.begin() + u.chunk_end;
    const std::uint32_t latest = *std::max_element(begin, end);
    for (int c = u.chunk_begin; c < u.chunk_end; ++c)
      if (version_[size(c)] < latest) late.push_back({c, latest});
  }
  for_each_piece(late.size(), [&](std::size_t i) {
    const auto [chunk, version] = late[i];
    if (writes_disk()) return replay_chunk(chunk, version);
    disk_->write(chunk, chunk + 1, nullptr, version);
    version_[size(chunk)] = seen_[size(chunk)] = version;
  });
}

}  // namespace distzo2
