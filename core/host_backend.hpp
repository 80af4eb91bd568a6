// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"
#include "core/exec.hpp"
#include "core/kernels/attention.hpp"
#include "core/kernels/rope.hpp"
#include "core/panels.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace distzo2 {

/// The host's threads: perturbed weights a row panel at a time, multiplied while they are in the cache. Buffers grow
/// until the largest batch has been seen; after that a step allocates nothing.
class HostBackend final : public Backend {
public:
  /// `config` outlives the backend.
  HostBackend(const ModelConfig& config, Compute compute);

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
  std::size_t bytes() const override;
  PassTimes take_times() override;
  void time_products() override;
  std::string arithmetic_fingerprint() const override;

private:
  const ModelConfig& config_;
  Compute compute_;
  HostExec exec_;
  PanelScratch panels_;
  std::array<ActivationBuffer, 4> activations_;
  ScratchVector<float> vectors_;         // the block's one-dimensional tensors, each (evaluations, size)
  std::vector<const float*> vector_of_;  // a weight of the block: its place in `vectors_`; null for a matrix
  RopeTable rope_;
  std::vector<AttentionTile> tiles_;
  ScratchVector<float> attention_scratch_;
  const PackedBatch* batch_ = nullptr;  // of the pass
  const Perturbation* perturbation_ = nullptr;
  Rows head_rows_;
  std::optional<LogProbHead> head_;
  double attention_s_ = 0.0, norm_s_ = 0.0;
};

}  // namespace distzo2
