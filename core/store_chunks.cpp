// SPDX-License-Identifier: BSD-3-Clause
// Chunks as they are stored, out of the store and into it: checkpoints.
#include "core/parameter_store.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace distzo2 {

std::uint32_t ParameterStore::read_stored(int chunk, std::byte* to) const {
  const Chunk& c = placement_.chunks.chunks[size(chunk)];
  const int unit = unit_of_chunk_[size(chunk)];
  if (pipeline_) pipeline_->wait_written(unit);
  if (placement_.units[size(unit)].tier == Tier::disk) {
    disk_->read(chunk, chunk + 1, to);
  } else {
    const std::byte* const from = memory_of_chunk(chunk);
    if (on_device(unit))
      device_->get(to, from, c.bytes);
    else
      std::memcpy(to, from, c.bytes);
  }
  return version_[size(chunk)];
}

void ParameterStore::restore_chunk(int chunk, const std::byte* image, std::uint32_t version) {
  assert(next_ == 0 && records_.empty());
  const Chunk& c = placement_.chunks.chunks[size(chunk)];
  const int unit = unit_of_chunk_[size(chunk)];
  const bool on_disk = placement_.units[size(unit)].tier == Tier::disk;
  if (on_disk) {
    disk_->write(chunk, chunk + 1, image, version);  // a rank that does not write there notes the version alone
  } else if (image != nullptr) {
    std::byte* const to = memory_of_chunk(chunk);
    if (on_device(unit))
      device_->put(to, image, c.bytes);
    else
      std::memcpy(to, image, c.bytes);
  }
  version_[size(chunk)] = seen_[size(chunk)] = version;
}

void ParameterStore::level_memory() {
  // A pass takes a tensor's chunks, and those of the units that a tensor lies in, as of one version.
  std::vector<int> chunks;
  std::uint32_t latest = 0;
  for (const Unit& u : placement_.units)
    for (int c = u.chunk_begin; u.tier != Tier::disk && c < u.chunk_end; ++c) {
      chunks.push_back(c);
      latest = std::max(latest, version_[size(c)]);
    }
  std::erase_if(chunks, [&](int c) { return version_[size(c)] == latest; });
  if (chunks.empty()) return;
  if (slices_) slices_->meet();  // nobody reads any more what is about to be overwritten
  for (const int c : chunks) {
    const Chunk& chunk = placement_.chunks.chunks[size(c)];
    const int unit = unit_of_chunk_[size(c)];
    std::byte* const data = memory_of_chunk(c);
    for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
      Weight w = view(i, c, chunk.row_begin, chunk.matrix() ? chunk.row_end : 1, data, version_[size(c)]);
      w.absorb = latest - version_[size(c)];
      w.pending = w.pending.first(w.absorb);
      if (on_device(unit)) {
        apply_pending(w);
        continue;
      }
      const auto [begin, end] = own_part(unit, static_cast<std::int64_t>(w.first), w.rows * w.cols);
      apply_pending(w, begin, end);
    }
    version_[size(c)] = seen_[size(c)] = latest;
  }
  if (slices_) slices_->meet();
}

}  // namespace distzo2
