// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device_memory.hpp"
#include "core/linear.hpp"
#include "core/log_prob_head.hpp"
#include "core/model_config.hpp"
#include "core/packed_batch.hpp"
#include "core/pass_times.hpp"
#include "core/precision.hpp"
#include "core/tensor_table.hpp"
#include "core/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace distzo2 {

/// The activation buffers of a pass.
enum class Activation : std::uint8_t {
  hidden,  // the residual stream
  branch,  // a norm's output, then a matrix's
  wide,    // q k v, then gate and up, or fc1
  head     // rows that the head matrix is multiplied with
};

/// What a backend is made for.
struct BackendSetup {
  const ModelConfig& config;  // outlives the backend
  const TensorTable& table;   // read while it is made
  Storage storage = Storage::fp32;
  Compute compute = Compute::fp32;
  BatchShape largest;        // buffers are made for it; larger batches make them grow
  bool reproducible = true;  // a row's bits do not depend on the batch around it
};

/// What computes: the operations that the families' stages and the head are made of. Rows and weights lie in the memory
/// that it computes in. Operations are done in the order of the calls; of them only `finish_head` and `logits` wait for
/// what was asked before, so that a device's work can be queued far ahead.
class Backend {
public:
  virtual ~Backend() = default;

  /// First thing in a pass: all evaluations of `p` over a checked batch. Both outlive the pass.
  virtual void begin_pass(const PackedBatch& batch, const Perturbation& p) = 0;

  /// Rows of one of the buffers, (evaluations, tokens, features), padded to whole tiles of rows; what was there is
  /// lost.
  virtual Rows rows(Activation buffer, int tokens, std::int64_t features) = 0;

  /// The products of up to three matrices with one x (core/linear.hpp), pending records applied and written back.
  virtual void linear(std::initializer_list<Product> products, const Rows& x) = 0;

  /// Rows ids[i] of a table, in fp32 (core/linear.hpp); adds to `out` if `add`.
  virtual void lookup_rows(const Rows& out, std::span<const std::int32_t> ids, const Weight& w, bool add) = 0;

  /// The one-dimensional tensors among a block's weights, each (evaluations, size), in the order of `weights` (null for
  /// a matrix). Valid until the next call.
  virtual std::span<const float* const> vectors(std::span<const Weight> weights) = 0;

  /// core/kernels: norm.hpp, rope.hpp (positions are the batch's), attention.hpp (spans are), elementwise.hpp.
  virtual void rms_norm(const Rows& y, const Rows& x, const float* weight, int size) = 0;
  virtual void layer_norm(const Rows& y, const Rows& x, const float* weight, const float* bias) = 0;
  virtual void rotate(const Rows& x) = 0;
  virtual void attention(const Rows& out, const Rows& q, const Rows& k, const Rows& v) = 0;
  virtual void silu_multiply(const Rows& gate, const Rows& up) = 0;
  virtual void relu(const Rows& x) = 0;
  virtual void gather_rows(const Rows& out, const Rows& x, std::span<const int> tokens) = 0;

  /// Log-probabilities (core/log_prob_head.hpp) of x's rows: begin, all row ranges of the head matrix in order, finish.
  virtual void begin_head(const Rows& x, std::span<const HeadTerm> terms) = 0;
  virtual void add_head_rows(const Weight& rows, std::int64_t first_row) = 0;
  virtual void finish_head(double* log_prob) = 0;  // (evaluations, terms), in host memory

  /// Logits of a row range of the head matrix, for tests and inspection. out (evaluations, rows of x, rows of w) in
  /// host memory.
  virtual void logits(const Rows& out, const Weight& w, const Rows& x) = 0;

  /// What applies updates to parameters in this memory; null where that is the store's own business.
  virtual PendingUpdates* updates() { return nullptr; }

  virtual std::size_t bytes() const = 0;  // allocated so far
  virtual PassTimes take_times() = 0;
  virtual void time_products() = 0;
  virtual std::string arithmetic_fingerprint() const = 0;
};

}  // namespace distzo2
