// SPDX-License-Identifier: BSD-3-Clause
#include "app/base_storage.hpp"

#include "core/error.hpp"
#include "core/simd/kernels.hpp"

#include <algorithm>
#include <vector>

namespace distzo2 {

BaseStorage::BaseStorage(WeightSource weights, TensorTable table, Storage storage)
    : weights_(std::move(weights)),
      table_(std::move(table)),
      storage_(storage),
      chunks_(make_chunk_table(table_, storage)) {}

void BaseStorage::read(int begin, int end, std::byte* image) {
  const std::size_t origin = chunks_.chunks[static_cast<std::size_t>(begin)].offset;
  for (int c = begin; c < end; ++c) {
    const Chunk& chunk = chunks_.chunks[static_cast<std::size_t>(c)];
    read_part(c, 0, {image + (chunk.offset - origin), chunk.bytes});
  }
}

void BaseStorage::read_part(int chunk, std::size_t offset, std::span<std::byte> to) {
  const Chunk& c = chunks_.chunks[static_cast<std::size_t>(chunk)];
  const Storage storage = c.matrix() ? storage_ : Storage::fp32;
  std::vector<float> values(to.size() / bytes_of(storage));  // indices of no tensor stay zero
  read_indices(weights_, table_, c, c.first + static_cast<std::int64_t>(offset / bytes_of(storage)), values);
  if (storage == Storage::fp32)
    std::ranges::copy(std::as_bytes(std::span(values)), to.begin());
  else
    simd_kernels().store_nearest(reinterpret_cast<std::uint16_t*>(to.data()), values.data(), storage, values.size());
}

void BaseStorage::write(int, int, const std::byte*, std::uint32_t) {
  throw Error(ExitCode::internal, "the base model is never written to");
}

std::unique_ptr<ParameterStore> replaying_store(BaseStorage& base, const TensorTable& table, const UpdateRule& rule) {
  Placement placement = make_units(table, base.chunks(), true);
  for (Unit& unit : placement.units) unit.tier = Tier::disk;
  placement.buffers = 0;  // no pass goes over it
  return std::make_unique<ParameterStore>(table, rule, base.arena(), std::move(placement), &base);
}

std::uint64_t base_digest(const WeightSource& weights, const TensorTable& table, const UpdateRule& rule,
                          const ByteProgress& progress) {
  BaseStorage base(weights, table, rule.storage);
  std::uint64_t done = 0;  // in bytes of fp32, whatever the files hold
  const std::uint64_t total = static_cast<std::uint64_t>(table.parameters) * sizeof(float);
  return replaying_store(base, table, rule)->digest([&](int, std::span<const float> values) {
    done += values.size_bytes();
    if (progress) progress("checking the base model", done, total);
  });
}

}  // namespace distzo2
