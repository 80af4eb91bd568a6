// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/families.hpp"
#include "core/models/gated_decoder.hpp"

namespace distzo2 {

/// Qwen3 (dense): the gated decoder with an RMSNorm over each head of q and k before the rotary embedding.
const Family& qwen3_family() {
  static constexpr Family family{
      [](const ModelConfig& config) { return gated_table(config, true); },
      gated_embedding,
      [](StageContext& ctx, std::span<const Weight> weights, int) { gated_block(ctx, weights, true); },
      gated_head,
      gated_head_matrix,
      gated_widths,
      true};
  return family;
}

}  // namespace distzo2
