// SPDX-License-Identifier: BSD-3-Clause
#include "core/host_backend.hpp"

#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/gemm.hpp"
#include "core/host_arena.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/norm.hpp"
#include "core/models/family.hpp"
#include "core/round_up.hpp"
#include "core/simd/kernels.hpp"

#include <gnu/libc-version.h>

#include <algorithm>
#include <utility>

namespace distzo2 {
namespace {

/// Adds the wall time of a scope to `total`.
class ScopedTime {
public:
  explicit ScopedTime(double& total) : total_(total), start_(Clock::now()) {}
  ScopedTime(const ScopedTime&) = delete;
  ScopedTime& operator=(const ScopedTime&) = delete;
  ~ScopedTime() { total_ += seconds_since(start_); }

private:
  double& total_;
  Clock::time_point start_;
};

}  // namespace

HostBackend::HostBackend(const ModelConfig& config, Compute compute)
    : config_(config),
      compute_(compute),
      panels_(exec_),
      activations_{ActivationBuffer("distzo2::hidden"), ActivationBuffer("distzo2::branch"),
                   ActivationBuffer("distzo2::wide"), ActivationBuffer("distzo2::head_rows")} {}

void HostBackend::begin_pass(const PackedBatch& batch, const Perturbation& p) {
  batch_ = &batch;
  perturbation_ = &p;
  attention_tiles(tiles_, batch.spans, attention_shape(config_));
  std::size_t const threads = static_cast<std::size_t>(exec_.concurrency());
  std::size_t const scratch = attention_scratch(static_cast<int>(config_.head_dim)) * threads;
  if (attention_scratch_.size() < scratch) attention_scratch_.resize(scratch);
  if (family_of(config_.family).rotary)
    rope_.reserve(config_.rope, static_cast<int>(config_.head_dim), std::ranges::max(batch.positions) + 1);
}

Rows HostBackend::rows(Activation buffer, int tokens, std::int64_t features) {
  return activations_[static_cast<std::size_t>(buffer)].shape(static_cast<int>(perturbation_->evaluations.size()),
                                                              tokens, static_cast<int>(features));
}

void HostBackend::linear(std::initializer_list<Product> products, const Rows& x) {
  distzo2::linear(exec_, products, x, *perturbation_, compute_, panels_);
}

void HostBackend::lookup_rows(const Rows& out, std::span<const std::int32_t> ids, const Weight& w, bool add) {
  distzo2::lookup_rows(exec_, out, ids, w, *perturbation_, add, panels_);
}

std::span<const float* const> HostBackend::vectors(std::span<const Weight> weights) {
  std::size_t const evaluations = perturbation_->evaluations.size();
  std::size_t floats = 0;
  for (const Weight& w : weights) floats += w.matrix ? 0 : evaluations * static_cast<std::size_t>(w.cols);
  if (vectors_.size() < floats) vectors_.resize(floats);
  vector_of_.assign(weights.size(), nullptr);
  float* next = vectors_.data();
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j].matrix) continue;
    perturbed_vector(next, weights[j], *perturbation_, panels_);
    vector_of_[j] = next;
    next += evaluations * static_cast<std::size_t>(weights[j].cols);
  }
  return vector_of_;
}

void HostBackend::rms_norm(const Rows& y, const Rows& x, const float* weight, int size) {
  const ScopedTime time(norm_s_);
  distzo2::rms_norm(exec_, y, x, weight, size, config_.norm_eps);
}

void HostBackend::layer_norm(const Rows& y, const Rows& x, const float* weight, const float* bias) {
  const ScopedTime time(norm_s_);
  distzo2::layer_norm(exec_, y, x, weight, bias, config_.norm_eps);
}

void HostBackend::rotate(const Rows& x) {
  distzo2::rotate(exec_, x, static_cast<int>(config_.head_dim), batch_->positions, rope_);
}

void HostBackend::attention(const Rows& out, const Rows& q, const Rows& k, const Rows& v) {
  const ScopedTime time(attention_s_);
  distzo2::attention(exec_, out, q, k, v, attention_shape(config_), batch_->spans, tiles_, compute_,
                     attention_scratch_.data());
}

void HostBackend::silu_multiply(const Rows& gate, const Rows& up) {
  distzo2::silu_multiply(exec_, gate, up);
}

void HostBackend::relu(const Rows& x) {
  distzo2::relu(exec_, x);
}

void HostBackend::gather_rows(const Rows& out, const Rows& x, std::span<const int> tokens) {
  distzo2::gather_rows(exec_, out, x, tokens);
}

void HostBackend::begin_head(const Rows& x, std::span<const HeadTerm> terms) {
  head_rows_ = x;
  head_.emplace(exec_, head_rows_, terms, *perturbation_, compute_, panels_);
}

void HostBackend::add_head_rows(const Weight& rows, std::int64_t first_row) {
  head_->add(rows, first_row);
}

void HostBackend::finish_head(double* log_prob) {
  head_->finish(log_prob);
  head_.reset();
}

void HostBackend::logits(const Rows& out, const Weight& w, const Rows& x) {
  linear({{out, w}}, x);
}

std::size_t HostBackend::bytes() const {
  std::size_t total = panels_.bytes() + rope_.bytes() + (vectors_.size() + attention_scratch_.size()) * sizeof(float);
  for (const ActivationBuffer& a : activations_) total += a.bytes();
  return total;
}

PassTimes HostBackend::take_times() {
  PassTimes times;
  auto& threads = panels_.threads();
  for (ThreadPanels& t : threads) {
    times.weights_s += std::exchange(t.z_s, 0.0) / static_cast<double>(threads.size());
    times.gemm_s += std::exchange(t.gemm_s, 0.0) / static_cast<double>(threads.size());
    times.product_s += std::exchange(t.product_s, 0.0) / static_cast<double>(threads.size());
  }
  times.attention_s = std::exchange(attention_s_, 0.0);
  times.norm_s = std::exchange(norm_s_, 0.0);
  times.gemm_flop = std::exchange(panels_.gemm_flop, 0.0);
  return times;
}

void HostBackend::time_products() {
  panels_.time_products = true;
}

std::string HostBackend::arithmetic_fingerprint() const {
  return gemm_fingerprint() + "; kernels " + simd_kernels().name + "; compute " + name_of(compute_) + "; tiles " +
         std::to_string(row_tile) + "; panels " + std::to_string(panel_rows(1)) + "/" +
         std::to_string(panel_rows(2048)) + "/" + std::to_string(panel_rows(8192)) + "; attention " +
         std::to_string(attention_rows) + "; libc " + gnu_get_libc_version();
}

std::size_t planned_activation_bytes(const ModelConfig& config, const BatchShape& largest, int threads) {
  const int tokens = largest.tokens, terms = largest.terms;
  const Family& family = family_of(config.family);
  const TensorTable table = family.table(config);
  const int head = family.head_matrix(config, table);
  const Tensor& head_matrix = table.tensors[static_cast<std::size_t>(head)];
  std::int64_t panel = 0, columns = 0, vectors = 0;
  for (const Tensor& t : table.tensors)
    if (t.matrix) {
      panel = std::max(panel, panel_rows(t.cols) * t.cols);
      columns = std::max(columns, t.cols);
    }
  for (const Block& b : table.blocks) vectors = std::max(vectors, b.end - b.vectors_first);
  const std::int64_t e = largest.evaluations;
  const std::int64_t partials = log_prob_partials(e * terms, head_matrix.rows, head_matrix.cols);
  const std::int64_t rope = family.rotary ? tokens * config.head_dim : 0;
  const auto attention = static_cast<std::int64_t>(attention_scratch(static_cast<int>(config.head_dim)));
  const std::int64_t floats =
      e * round_up(tokens, row_tile) * (config.hidden + wide_features(config))  // residual stream, wide
      + e * round_up(std::max(tokens, terms), row_tile) * config.hidden         // branch
      + e * round_up(terms, row_tile) * head_matrix.cols + 4 * partials +
      6 * e * terms                               // the head's; softmax in double
      + e * round_up(tokens, row_tile) * columns  // rounded inputs, at most
      + e * vectors + rope + threads * (attention + 4 * panel + row_tile * panel_rows(0) + 2 * chunk_elements);
  return static_cast<std::size_t>(floats) * sizeof(float);
}

Rows ActivationBuffer::shape(int evaluations, int tokens, int features) {
  const std::int64_t evaluation_stride = std::int64_t{round_up(tokens, row_tile)} * features;
  const auto wanted = static_cast<std::size_t>(evaluation_stride * evaluations);
  if (floats_ < wanted) {
    memory_.reset();  // the smaller one goes before the larger one comes
    memory_ = make_kokkos_arena()->allocate(label_, wanted * sizeof(float));
    floats_ = wanted;
  }
  return {reinterpret_cast<float*>(memory_.get()), evaluations, tokens, features, features, evaluation_stride};
}

}  // namespace distzo2
