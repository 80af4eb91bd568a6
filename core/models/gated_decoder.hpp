// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/models/family.hpp"

namespace distzo2 {

/// What LLaMA and Qwen3 share: RMSNorm, rotary grouped-query attention, a SiLU-gated MLP.
/// A block's tensors: q k v o, gate up down; then the biases of those that have one in the same order, the input norm,
/// the norm before the MLP and, with head norms (Qwen3), those of q and k. Head block: lm_head unless tied, final norm.
TensorTable gated_table(const ModelConfig& config, bool head_norms);

void gated_embedding(StageContext& ctx, std::span<const Weight> weights);
void gated_block(StageContext& ctx, std::span<const Weight> weights, bool head_norms);
void gated_head(StageContext& ctx, std::span<const Weight> weights, std::span<const int> tokens, const Rows& out);
int gated_head_matrix(const ModelConfig& config, const TensorTable& table);
Widths gated_widths(const ModelConfig& config);

}  // namespace distzo2
