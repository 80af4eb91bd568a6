// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/progress.hpp"
#include "core/block_storage.hpp"
#include "core/parameter_store.hpp"

#include <cstdint>
#include <memory>

namespace distzo2 {

/// The base model itself as slow storage that is only read: theta_0, rounded to storage precision as it is asked for.
class BaseStorage final : public BlockStorage {
public:
  BaseStorage(WeightSource weights, TensorTable table, Storage storage);
  const ChunkTable& chunks() const { return chunks_; }
  HostArena& arena() { return *arena_; }  // of the store over it

  void read(int begin, int end, std::byte* image) override;
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override;
  /// Error (internal).
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override;
  bool holds(int) const override { return true; }
  std::uint32_t version(int) const override { return 0; }

private:
  WeightSource weights_;
  TensorTable table_;
  Storage storage_;
  ChunkTable chunks_;
  std::unique_ptr<HostArena> arena_ = make_kokkos_arena();
};

/// A store over it that holds nothing in memory: what is read of it, and its digest, is made by replay each time. It
/// takes a few chunks of memory whatever the model's size.
std::unique_ptr<ParameterStore> replaying_store(BaseStorage& base, const TensorTable& table, const UpdateRule& rule);

/// theta_0's digest, of the base model as it stands there: all of it is read once. `progress` may be null.
std::uint64_t base_digest(const WeightSource& weights, const TensorTable& table, const UpdateRule& rule,
                          const ByteProgress& progress);

}  // namespace distzo2
