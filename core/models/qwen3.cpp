// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/families.hpp"
#include "core/models/gated_decoder.hpp"

namespace distzo2 {

/// Qwen3 (dense): the gated decoder with an RMSNorm over each head of q and k before the rotary embedding.
const Family& qwen3_family() {
  static constexpr Family family{
      .table = [](const ModelConfig& config) { return gated_table(config, true); },
      .embedding = gated_embedding,
      .block = [](StageContext& ctx, std::span<const Weight> weights, int) { gated_block(ctx, weights, true); },
      .head = gated_head,
      .head_matrix = gated_head_matrix,
      .widths = gated_widths,
      .rotary = true};
  return family;
}

}  // namespace distzo2
