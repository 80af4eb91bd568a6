// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/rope.hpp"
#include "core/models/family.hpp"
#include "core/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// What the stages of every family work with besides the residual stream. Grows until the largest batch has been seen;
/// after that a step allocates nothing.
struct Activations {
  ActivationBuffer branch{"distzo2::branch"};  // (evaluations, tokens, hidden): a norm's output, then a matrix's
  ActivationBuffer wide{"distzo2::wide"};      // (evaluations, tokens, q k v), then gate and up, or fc1
  std::vector<float> vectors;                  // the block's one-dimensional tensors, each (evaluations, size)
  std::vector<const float*> vector_of;         // a weight of the block: its place in `vectors`; null for a matrix
  RopeTable rope;
  std::vector<AttentionTile> tiles;
  std::vector<float> attention_scratch;
  std::vector<std::int32_t> position_rows;  // OPT: rows of the position table
  double attention_s = 0.0;                 // wall time, for PassTimes; the reader sets them back
  double norm_s = 0.0;
  std::size_t bytes() const;
};

/// Bytes that Activations will hold for batches of at most this many tokens and terms.
std::size_t stage_bytes(const ModelConfig& config, int evaluations, int tokens, int terms, int threads);

/// Features of `wide` that the family needs.
int wide_features(const ModelConfig& config);

/// Throws Error (internal) for a batch that is broken or names tokens beyond the vocabulary.
void check_batch(const PackedBatch& batch, std::int64_t vocab);

/// First thing in a pass over a checked batch: plans attention, makes room.
void prepare_batch(StageContext& ctx);

/// First thing in a stage with one-dimensional tensors: their values for every evaluation, in scratch.vector_of.
void load_vectors(StageContext& ctx, std::span<const Weight> weights);

/// Hands out the entries of vector_of one after another, null where the tensor does not exist.
class VectorCursor {
public:
  VectorCursor(const StageContext& ctx, std::size_t first) : vector_of_(ctx.scratch.vector_of), next_(first) {}
  const float* take(bool exists) { return exists ? vector_of_[next_++] : nullptr; }

private:
  const std::vector<const float*>& vector_of_;
  std::size_t next_;
};

Rows branch_rows(StageContext& ctx);
Rows wide_rows(StageContext& ctx, std::int64_t features);

/// The products of x in the context's precision.
void linear(StageContext& ctx, std::initializer_list<Product> products, const Rows& x);

/// q, k and v stand side by side in `qkv`; the result replaces q, whose rows are returned.
Rows attend(StageContext& ctx, const Rows& qkv);

/// Adds the wall time of a scope to `total`.
class ScopedTime {
public:
  explicit ScopedTime(double& total) : total_(total) {}
  ScopedTime(const ScopedTime&) = delete;
  ScopedTime& operator=(const ScopedTime&) = delete;
  ~ScopedTime() { total_ += timer_.seconds(); }

private:
  double& total_;
  Kokkos::Timer timer_;
};

}  // namespace distzo2
