// SPDX-License-Identifier: BSD-3-Clause
#include "core/parameter_store.hpp"

#include <algorithm>
#include <utility>

namespace distzo2 {

// Units that the ranks of a node share: each rank updates its own slices of them, a block before the one that it
// computes, and waits for the others' before it computes a block. Records and versions are the same on all of these
// ranks, so all know without a word whether a pass updates anything. Where buffers stand between the copy and what is
// computed, the copy alone is updated, before the pass: nothing is written back then.

// One-dimensional tensors keep to the rounding points of the matrices beside them: a unit has one version.
std::uint32_t ParameterStore::updated(std::uint32_t version) const {
  return std::max(version, rule_.storage == Storage::fp32 ? next_ : next_ - next_ % rule_.round_every);
}

std::pair<std::int64_t, std::int64_t> ParameterStore::own_part(int unit, std::int64_t first, std::int64_t n) const {
  if (!shares(unit)) return {0, n};
  const Unit& u = placement_.units[size(unit)];
  const Chunk& last = placement_.chunks.chunks[size(u.chunk_end - 1)];
  const SliceRange own = slices_->own(placement_.chunks.chunks[size(u.chunk_begin)].first, last.first + last.elements);
  return {std::clamp<std::int64_t>(own.begin - first, 0, n), std::clamp<std::int64_t>(own.end - first, 0, n)};
}

void ParameterStore::imported() {
  if (slices_) slices_->meet();
}

void ParameterStore::begin_slices() {
  bool late = false;
  for (int u = 0; u < std::ssize(placement_.units); ++u) {
    const std::uint32_t version = version_[size(placement_.units[size(u)].chunk_begin)];
    late = late || (shares(u) && updated(version) > version);
  }
  if (!late) return;
  // Each rank samples all matrices, so that its report is that of one rank alone.
  for (int i = 0; i < std::ssize(table_.tensors); ++i) {
    const int unit = units_of(i).front();
    if (table_.tensors[size(i)].matrix && shares(unit))
      sample_rounding_of(
          stored_rows(i, first_chunk(i), std::min(placement_.units[size(unit)].chunk_end, end_chunk(i))));
  }
  // No rank may still be reading what is about to be overwritten: all have done so when they come here, be it the pass
  // of the step before (then the exchange at its end stands between anyway), an evaluation, a digest or an export.
  slices_->meet();
  const int blocks = stages_shared_units() ? static_cast<int>(table_.blocks.size()) : 1;
  for (int b = 0; b < blocks; ++b) update_slices(b);
  if (stages_shared_units())
    for (int b = 0; b < blocks; ++b) await_slices(b);
}

Weight ParameterStore::stored_rows(int tensor, int chunk_begin, int chunk_end) const {
  const Chunk &first = placement_.chunks.chunks[size(chunk_begin)],
              &last = placement_.chunks.chunks[size(chunk_end - 1)];
  return view(tensor, chunk_begin, first.row_begin, first.matrix() ? last.row_end : 1, memory_of_chunk(chunk_begin),
              version_[size(chunk_begin)]);
}

void ParameterStore::update_slices(int block) {
  if (block >= std::ssize(table_.blocks)) return;
  for (int u = placement_.unit_begin[size(block)]; u < placement_.unit_begin[size(block) + 1]; ++u) {
    if (!shares(u)) continue;
    const Unit& unit = placement_.units[size(u)];
    const std::uint32_t to = updated(version_[size(unit.chunk_begin)]);
    if (slices_->published(u) >= to) continue;
    for (int c = unit.chunk_begin; c < unit.chunk_end; ++c) {
      const Chunk& chunk = placement_.chunks.chunks[size(c)];
      for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
        const Weight w = stored_rows(i, c, c + 1);
        const auto [begin, end] = own_part(u, static_cast<std::int64_t>(w.first), w.rows * w.cols);
        apply_pending(w, begin, end);
      }
    }
    slices_->publish(u, to);
  }
}

void ParameterStore::await_slices(int block) {
  for (int u = placement_.unit_begin[size(block)]; u < placement_.unit_begin[size(block) + 1]; ++u) {
    if (!shares(u)) continue;
    const Unit& unit = placement_.units[size(u)];
    const std::uint32_t to = updated(version_[size(unit.chunk_begin)]);
    slices_->wait_for(u, to);
    absorbed_chunks(unit.chunk_begin, unit.chunk_end, to);
  }
}

void ParameterStore::update_shared() {
  if (!slices_) return;
  begin_slices();
  const int blocks = static_cast<int>(table_.blocks.size());
  for (int b = 0; b < blocks; ++b) update_slices(b);
  for (int b = 0; b < blocks; ++b) await_slices(b);
}

}  // namespace distzo2
