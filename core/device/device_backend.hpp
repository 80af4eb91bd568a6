// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"
#include "core/device/attention.hpp"
#include "core/device/gemm.hpp"
#include "core/device/head.hpp"
#include "core/device/rows.hpp"
#include "core/device/staging.hpp"
#include "core/device/weights.hpp"
#include "core/device_memory.hpp"
#include "core/kernels/rope.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// A device: weights are made one matrix at a time, all evaluations from one z, the deferred update in the same kernel,
/// and multiplied by the library. Every operation is queued on `exec`; the host waits for the log-probabilities alone.
/// Buffers are the terms of core/device_memory.hpp.
template <class Space>
class DeviceBackend final : public Backend, public PendingUpdates {
public:
  using Exec = typename Space::Exec;
  DeviceBackend(const Exec& exec, std::unique_ptr<DeviceGemm> gemm, const BackendSetup& setup);

  void begin_pass(const PackedBatch& batch, const Perturbation& p) override;
  Rows rows(Activation buffer, int tokens, std::int64_t features) override;
  void linear(std::initializer_list<Product> products, const Rows& x) override;
  void lookup_rows(const Rows& out, std::span<const std::int32_t> ids, const Weight& w, bool add) override;
  std::span<const float* const> vectors(std::span<const Weight> weights) override;
  void rms_norm(const Rows& y, const Rows& x, const float* weight, int size) override;
  void layer_norm(const Rows& y, const Rows& x, const float* weight, const float* bias) override;
  void rotate(const Rows& x) override;
  void attention(const Rows& out, const Rows& q, const Rows& k, const Rows& v) override;
  void silu_multiply(const Rows& gate, const Rows& up) override;
  void relu(const Rows& x) override;
  void gather_rows(const Rows& out, const Rows& x, std::span<const int> tokens) override;
  void begin_head(const Rows& x, std::span<const HeadTerm> terms) override;
  void add_head_rows(const Weight& rows, std::int64_t first_row) override;
  void finish_head(double* log_prob) override;
  void logits(const Rows& out, const Weight& w, const Rows& x) override;
  PendingUpdates* updates() override { return this; }
  void apply_pending(const Weight& w) override;
  std::size_t bytes() const override;
  PassTimes take_times() override;
  void time_products() override {}  // a device's times are those of its lanes
  std::string arithmetic_fingerprint() const override;

private:
  /// x as the library takes it, in the compute precision.
  struct Input {
    const std::byte* data = nullptr;
    std::int64_t lda = 0, evaluation_bytes = 0;
  };
  template <class T>
  const T* put(const std::vector<T>& values) {
    return tables_.put(exec_, std::span<const T>(values));
  }
  static Elements elements_of(const Weight& w) { return {w.data, w.storage, w.first, w.rows * w.cols}; }
  void reserve_results(std::size_t bytes);
  Records records_of(const Weight& w);
  std::byte* make(const Weight& w);
  Input input_of(const Rows& x);
  void multiply(const Input& x, int evaluation, int first_row, int rows, const std::byte* w, int n, int k, float* c,
                std::int64_t ldc, bool add);
  /// use(row of w, rows of w, row of x, rows of x, evaluation, logits) for all pieces of x w^T; `first_row` of the head
  /// matrix is w's first.
  template <class Use>
  void for_each_logits(const Weight& w, std::int64_t first_row, const Rows& x, const Input& input, const Use& use);

  Exec exec_;
  std::unique_ptr<DeviceGemm> gemm_;
  const ModelConfig& config_;
  Compute compute_;
  bool reproducible_;
  std::int64_t head_chunk_ = 0, head_step_ = 0;  // rows of a chunk of the head matrix; rows of it at a time

  DeviceBuffer<Space> weights_{"distzo2::device::weights"}, rounded_{"distzo2::device::rounded"};
  DeviceBuffer<Space> vectors_{"distzo2::device::vectors"}, logits_{"distzo2::device::logits"};
  DeviceBuffer<Space> softmax_{"distzo2::device::softmax"}, rope_values_{"distzo2::device::rope"};
  std::array<DeviceBuffer<Space>, 4> activations_;
  Staging<Space> tables_;
  std::shared_ptr<std::byte> results_;  // log-probabilities on the host
  std::size_t result_bytes_ = 0;

  // Of the pass.
  const Perturbation* perturbation_ = nullptr;
  Directions directions_;
  std::vector<DirectionEntry> direction_entries_;
  std::vector<EvaluationEntry> evaluation_entries_;
  std::vector<const float*> vector_of_;
  RopeTable rope_;
  int rope_uploaded_ = 0;
  const std::int32_t* positions_ = nullptr;
  const AttentionSpan* spans_ = nullptr;
  const AttentionTile* tiles_ = nullptr;
  std::vector<AttentionTile> host_tiles_;
  HeadState head_;
  Rows head_rows_;
  Input head_input_;
  std::vector<std::int32_t> terms_begin_, term_of_row_, targets_, rows_of_terms_;

  // The records that are on the device: [first, first + count) by t, of the pass.
  const RecordEntry* record_entries_ = nullptr;
  const float* record_c_ = nullptr;
  std::uint32_t first_record_ = 0, record_count_ = 0;
  std::vector<RecordEntry> host_records_;
  std::vector<float> host_c_;

  double gemm_flop_ = 0.0;
};

}  // namespace distzo2
