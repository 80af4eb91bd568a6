// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/rounding_report.hpp"
#include "core/tensor_table.hpp"
#include "core/trajectory_record.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// Where host memory comes from: plain, pinned on a CUDA build, or a window shared by the ranks of a node.
struct HostArena {
  virtual ~HostArena() = default;
  /// Zeroed, aligned to 4096 bytes, labelled for Kokkos Tools.
  virtual std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) = 0;
};
std::unique_ptr<HostArena> make_kokkos_arena();

/// A matrix or one-dimensional tensor as a stage sees it: stored values and the records not yet in them.
struct Weight {
  std::byte* data = nullptr;  // (rows, cols) row-major in `storage`
  Storage storage = Storage::fp32;
  bool matrix = false;
  std::int64_t rows = 0, cols = 0;
  std::uint64_t first = 0;  // global index of element (0, 0)
  const UpdateRule* rule = nullptr;
  std::span<const StepRecord> pending;  // records to apply, oldest first
  std::size_t absorb = 0;               // how many of `pending` a pass may write back (up to the last rounding point)
};

class PanelScratch;  // core/panels.hpp

/// All parameters of a resident model: one flat buffer a block, matrices in S, one-dimensional tensors in fp32.
/// A stored tensor has a version, the first record not yet in it; every reader sees the pending records applied.
class ParameterStore {
public:
  ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena);
  ~ParameterStore();

  const TensorTable& table() const { return table_; }
  const UpdateRule& rule() const { return rule_; }
  std::size_t bytes() const { return bytes_; }       // of the stored parameters
  std::uint32_t next_step() const { return next_; }  // t of the next record

  /// Values of a tensor's elements [offset, offset + n), rounded to nearest. Only before the first record.
  void import_values(int tensor, std::int64_t offset, std::span<const float> values);

  /// The record becomes pending for every tensor. Its t must be next_step().
  void append(StepRecord record);

  /// A view for one pass. A pass that writes applies pending[0, absorb) to every element and stores it; then it calls
  /// `absorbed`.
  Weight weight(int tensor) const;
  void absorbed(int tensor);

  /// Before a pass absorbs a tensor's records: counts what rounding will make of them.
  void sample_rounding_of(int tensor);
  const RoundingReport& rounding() const { return rounding_; }

  /// Applies and writes back what can be absorbed, everywhere; threads over chunks.
  void apply_pending();
  void apply_pending(int tensor);

  /// out[0..n) = elements [offset, offset + n) of the tensor with the pending records applied.
  void read(int tensor, std::int64_t offset, std::span<float> out) const;

  /// Sum mod 2^64 of XXH3-64 over chunks of 4,096 indices as readers see them (design section 3).
  std::uint64_t digest() const;

private:
  TensorTable table_;
  UpdateRule rule_;
  std::vector<std::shared_ptr<std::byte>> blocks_;
  std::vector<std::uint32_t> version_;  // a tensor
  std::vector<StepRecord> records_;     // records_[i].t == first_record_ + i; those still pending somewhere
  std::uint32_t first_record_ = 0;
  std::uint32_t next_ = 0;
  std::size_t bytes_ = 0;
  RoundingReport rounding_;
  std::unique_ptr<PanelScratch> scratch_;  // of apply_pending
};

}  // namespace distzo2
