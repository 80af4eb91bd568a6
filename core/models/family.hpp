// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/linear.hpp"
#include "core/model_config.hpp"
#include "core/packed_batch.hpp"
#include "core/tensor_table.hpp"

#include <span>
#include <vector>

namespace distzo2 {

/// What a stage works on besides weights: the batch and the activations of all this rank's evaluations.
struct StageContext {
  const HostExec& exec;
  const ModelConfig& config;
  const PackedBatch& batch;
  const Perturbation& perturbation;
  Compute compute;
  Rows hidden;                 // (evaluations, tokens, hidden): the residual stream, fp32
  struct Activations& scratch; // the family's other buffers, core/models/activations.hpp
  PanelScratch& panels;
};

/// A family is a list of stages: embedding, block i, head. `weights[j]` are the block's tensors in the order in which
/// the family's table lists them. A stage sees its weights and the activations, never the model.
struct Family {
  TensorTable (*table)(const ModelConfig& config);
  void (*embedding)(StageContext& ctx, std::span<const Weight> weights);
  void (*block)(StageContext& ctx, std::span<const Weight> weights, int layer);
  /// `head_matrix` is lm_head or, tied, the embedding; log_prob (evaluations, batch.terms.size()).
  void (*head)(StageContext& ctx, std::span<const Weight> weights, const Weight& head_matrix, double* log_prob);
};

const Family& family_of(FamilyKind kind);

}  // namespace distzo2
