// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"
#include "core/model_config.hpp"
#include "core/packed_batch.hpp"
#include "core/tensor_table.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// What a stage works on besides weights: the batch and the activations of all this rank's evaluations.
struct StageContext {
  const ModelConfig& config;
  const PackedBatch& batch;
  Backend& backend;
  Rows hidden;                               // (evaluations, tokens, hidden): the residual stream, fp32
  std::vector<std::int32_t>& position_rows;  // OPT: rows of the position table; kept, so that a step allocates nothing
  ParameterStore& store;  // for `linear` alone: it opens the matrices of a group, and tells what it has absorbed
};

/// Features of a token that buffers are sized by.
struct Widths {
  std::int64_t embedding = 0;  // columns of the token table and of the head matrix
  std::int64_t mlp = 0;        // what the MLP's first matrices make
};

/// A family is a list of stages: embedding, block i, head. `weights[j]` are the block's tensors in the order in which
/// the family's table lists them (an untied lm_head is the first of the head block). A stage sees its weights and the
/// activations, never the model.
struct Family {
  TensorTable (*table)(const ModelConfig& config);
  void (*embedding)(StageContext& ctx, std::span<const Weight> weights);
  void (*block)(StageContext& ctx, std::span<const Weight> weights, int layer);
  /// The rows that the head matrix is multiplied with: final norm (and OPT-350m's project_out) of these tokens. out
  /// (evaluations, tokens.size(), width of the head matrix). The engine multiplies: log-probabilities or logits.
  void (*head)(StageContext& ctx, std::span<const Weight> weights, std::span<const int> tokens, const Rows& out);
  /// The tensor that is the head matrix: lm_head or, tied, the token embedding.
  int (*head_matrix)(const ModelConfig& config, const TensorTable& table);
  Widths (*widths)(const ModelConfig& config);
  bool rotary;  // q and k are turned by their positions; without, the embedding adds rows of a table of positions
};

const Family& family_of(FamilyKind kind);

/// Features of the buffer `wide`: q k v, the MLP's, or embeddings on their way to the projection.
std::int64_t wide_features(const ModelConfig& config);

}  // namespace distzo2
