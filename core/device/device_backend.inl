// SPDX-License-Identifier: BSD-3-Clause
// DeviceBackend's members: included by the sources that instantiate it for a Space. Those that multiply stand in
// device_products.inl.
#include "core/chunk_table.hpp"
#include "core/device/device_backend.hpp"
#include "core/device/device_products.inl"
#include "core/error.hpp"
#include "core/models/family.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <utility>

namespace distzo2 {

template <class Space>
DeviceBackend<Space>::DeviceBackend(const Exec& exec, std::unique_ptr<DeviceGemm> gemm, const BackendSetup& setup)
    : exec_(exec),
      gemm_(std::move(gemm)),
      config_(setup.config),
      compute_(setup.compute),
      reproducible_(setup.reproducible),
      activations_{DeviceBuffer<Space>("distzo2::device::hidden"), DeviceBuffer<Space>("distzo2::device::branch"),
                   DeviceBuffer<Space>("distzo2::device::wide"), DeviceBuffer<Space>("distzo2::device::head_rows")},
      tables_(device_sizes(setup.config, setup.compute, setup.largest).tables) {
  if (config_.head_dim > device_attention_head_dim)
    throw Error(ExitCode::usage, "attention heads of " + std::to_string(config_.head_dim) +
                                     " features: devices take at most " + std::to_string(device_attention_head_dim));
  // Pieces of the head matrix stand at the same rows however its chunks are cut into units: they never cross a chunk.
  const int head = family_of(config_.family).head_matrix(config_, setup.table);
  const Tensor& matrix = setup.table.tensors[static_cast<std::size_t>(head)];
  for (const Chunk& c : make_chunk_table(setup.table, setup.storage).chunks)
    if (c.matrix() && c.tensor_begin == head && c.row_begin == 0) head_chunk_ = c.row_end;
  const std::int64_t logits = static_cast<std::int64_t>(device_logits_bytes / sizeof(float)) / device_row_tile;
  head_step_ = std::clamp<std::int64_t>(std::min(largest_matrix(config_) / matrix.cols, logits), 1, head_chunk_);

  if (setup.largest.tokens == 0) return;
  const DeviceSizes s = device_sizes(config_, compute_, setup.largest);
  weights_.at_least(exec_, s.weights);
  rounded_.at_least(exec_, s.rounded);
  vectors_.at_least(exec_, s.vectors);
  logits_.at_least(exec_, s.logits);
  softmax_.at_least(exec_, s.softmax);
  rope_values_.at_least(exec_, s.rope);
  const std::uint64_t activations[] = {s.hidden, s.branch, s.wide, s.head};
  for (std::size_t i = 0; i < activations_.size(); ++i) activations_[i].at_least(exec_, activations[i]);
  reserve_results(s.results);
}

template <class Space>
void DeviceBackend<Space>::reserve_results(std::size_t bytes) {
  if (bytes <= result_bytes_) return;
  results_ = Space::allocate_host("distzo2::device::results", bytes);
  result_bytes_ = bytes;
}

template <class Space>
void DeviceBackend<Space>::begin_pass(const PackedBatch& batch, const Perturbation& p) {
  tables_.restart(exec_);  // a wait only where the store has asked for something since the last pass
  record_count_ = 0;
  perturbation_ = &p;

  direction_entries_.clear();
  evaluation_entries_.clear();
  const auto direction_of = [](const Evaluation& e) { return e.scale == 0.0F ? 0U : e.direction; };
  for (const Evaluation& first : p.evaluations) {
    const std::uint32_t direction = direction_of(first);
    if (std::ranges::any_of(direction_entries_, [&](const auto& d) { return d.direction == direction; })) continue;
    const int begin = static_cast<int>(evaluation_entries_.size());
    for (int e = 0; e < std::ssize(p.evaluations); ++e) {
      const Evaluation& evaluation = p.evaluations[static_cast<std::size_t>(e)];
      if (direction_of(evaluation) == direction) evaluation_entries_.push_back({e, evaluation.scale});
    }
    direction_entries_.push_back({direction, begin, static_cast<int>(evaluation_entries_.size())});
  }
  directions_ = {put(direction_entries_),
                 put(evaluation_entries_),
                 static_cast<int>(direction_entries_.size()),
                 p.seed,
                 p.t,
                 p.kind == DirectionKind::gaussian};

  positions_ = put(batch.positions);
  spans_ = put(batch.spans);
  attention_tiles(host_tiles_, batch.spans, attention_shape(config_),
                  device_attention_rows(static_cast<int>(config_.head_dim)));
  tiles_ = put(host_tiles_);
  if (!family_of(config_.family).rotary) return;
  rope_.reserve(config_.rope, static_cast<int>(config_.head_dim), std::ranges::max(batch.positions) + 1);
  if (rope_.positions() == rope_uploaded_) return;
  std::byte* const values = rope_values_.at_least(exec_, rope_.bytes());
  Space::copy(exec_, values, rope_.at(0), rope_.bytes());
  rope_uploaded_ = rope_.positions();
}

template <class Space>
Rows DeviceBackend<Space>::rows(Activation buffer, int tokens, std::int64_t features) {
  const auto evaluations = static_cast<int>(perturbation_->evaluations.size());
  const std::int64_t stride = round_up(tokens, device_row_tile) * features;
  std::byte* const data = activations_[static_cast<std::size_t>(buffer)].at_least(
      exec_, static_cast<std::size_t>(evaluations * stride) * sizeof(float));
  return {reinterpret_cast<float*>(data), evaluations, tokens, static_cast<int>(features), features, stride};
}

template <class Space>
Records DeviceBackend<Space>::records_of(const Weight& w) {
  Records r;
  if (w.pending.empty()) return r;
  const std::uint32_t first = w.pending.front().t;
  const auto count = static_cast<std::uint32_t>(w.pending.size());
  if (first < first_record_ || first + count > first_record_ + record_count_) {
    host_records_.clear();
    host_c_.clear();
    for (const StepRecord& record : w.pending) {
      const auto c_begin = static_cast<std::uint32_t>(host_c_.size());
      host_c_.insert(host_c_.end(), record.c.begin(), record.c.end());
      host_records_.push_back({record.t, decay_factor(record), c_begin, static_cast<std::uint32_t>(host_c_.size()),
                               (record.t + 1) % w.rule->round_every == 0});
    }
    record_entries_ = put(host_records_);
    record_c_ = put(host_c_);
    first_record_ = first;
    record_count_ = count;
  }
  r.entries = record_entries_ + (first - first_record_);
  r.c = record_c_;
  r.absorb = static_cast<std::uint32_t>(w.absorb);
  r.count = count;
  r.seed = w.rule->seed;
  r.storage = w.storage;
  r.gaussian = w.rule->kind == DirectionKind::gaussian;
  r.matrix = w.matrix;
  r.stochastic = w.rule->rounding == Rounding::stochastic;
  return r;
}

template <class Space>
void DeviceBackend<Space>::apply_pending(const Weight& w) {
  Records records = records_of(w);
  if (records.absorb == 0) return;
  tables_.queued();  // its records may have been put by the pass before
  records.count = records.absorb;
  make_weights<Space>(exec_, nullptr, elements_of(w), records, {}, compute_, 0);
}

/// All evaluations' weights, (evaluations, w.rows, w.cols) in the compute precision.
template <class Space>
std::byte* DeviceBackend<Space>::make(const Weight& w) {
  const std::int64_t size = w.rows * w.cols;
  std::byte* const out =
      weights_.at_least(exec_, perturbation_->evaluations.size() * static_cast<std::size_t>(size) * bytes_of(compute_));
  make_weights<Space>(exec_, out, elements_of(w), records_of(w), directions_, compute_, size);
  return out;
}

template <class Space>
void DeviceBackend<Space>::lookup_rows(const Rows& out, std::span<const std::int32_t> ids, const Weight& w, bool add) {
  look_up_rows<Space>(exec_, out, tables_.put(exec_, ids), elements_of(w), w.cols, w.gathered, records_of(w),
                      directions_, add);
}

template <class Space>
std::span<const float* const> DeviceBackend<Space>::vectors(std::span<const Weight> weights) {
  const std::size_t evaluations = perturbation_->evaluations.size();
  std::size_t floats = 0;
  for (const Weight& w : weights) floats += w.matrix ? 0 : evaluations * static_cast<std::size_t>(w.cols);
  float* next = reinterpret_cast<float*>(vectors_.at_least(exec_, floats * sizeof(float)));
  vector_of_.assign(weights.size(), nullptr);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const Weight& w = weights[j];
    if (w.matrix) continue;
    Records records = records_of(w);
    records.absorb = 0;  // a reader
    make_weights<Space>(exec_, reinterpret_cast<std::byte*>(next), elements_of(w), records, directions_, Compute::fp32,
                        w.cols);
    vector_of_[j] = next;
    next += evaluations * static_cast<std::size_t>(w.cols);
  }
  return vector_of_;
}

template <class Space>
void DeviceBackend<Space>::rms_norm(const Rows& y, const Rows& x, const float* weight, int size) {
  rms_norm_rows<Space>(exec_, y, x, weight, size, config_.norm_eps);
}

template <class Space>
void DeviceBackend<Space>::layer_norm(const Rows& y, const Rows& x, const float* weight, const float* bias) {
  layer_norm_rows<Space>(exec_, y, x, weight, bias, config_.norm_eps);
}

template <class Space>
void DeviceBackend<Space>::rotate(const Rows& x) {
  rotate_rows<Space>(exec_, x, static_cast<int>(config_.head_dim) / 2, positions_,
                     reinterpret_cast<const float*>(rope_values_.at_least(exec_, 0)));
}

template <class Space>
void DeviceBackend<Space>::attention(const Rows& out, const Rows& q, const Rows& k, const Rows& v) {
  attend_rows<Space>(exec_, out, q, k, v, attention_shape(config_), spans_, tiles_,
                     static_cast<int>(host_tiles_.size()), compute_);
}

template <class Space>
void DeviceBackend<Space>::silu_multiply(const Rows& gate, const Rows& up) {
  silu_multiply_rows<Space>(exec_, gate, up);
}

template <class Space>
void DeviceBackend<Space>::relu(const Rows& x) {
  relu_rows<Space>(exec_, x);
}

template <class Space>
void DeviceBackend<Space>::gather_rows(const Rows& out, const Rows& x, std::span<const int> tokens) {
  gather_rows_of<Space>(exec_, out, x, tables_.put(exec_, tokens));
}

template <class Space>
std::size_t DeviceBackend<Space>::bytes() const {
  std::size_t total = tables_.bytes();
  for (const auto* b : {&weights_, &rounded_, &vectors_, &logits_, &softmax_, &rope_values_}) total += b->bytes();
  for (const auto& a : activations_) total += a.bytes();
  return total;
}

template <class Space>
PassTimes DeviceBackend<Space>::take_times() {
  PassTimes times;
  times.gemm_flop = std::exchange(gemm_flop_, 0.0);
  return times;
}

template <class Space>
std::string DeviceBackend<Space>::arithmetic_fingerprint() const {
  return gemm_->name() + "; compute " + name_of(compute_) + "; tiles " +
         (reproducible_ ? std::to_string(device_row_tile) : "none") + "; head " + std::to_string(head_step_) +
         "; attention " + std::to_string(device_attention_rows(static_cast<int>(config_.head_dim)));
}

}  // namespace distzo2
