// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/families.hpp"
#include "core/models/gated_decoder.hpp"

namespace distzo2 {

/// LLaMA 2 and 3, SmolLM2: the gated decoder, with biases where the configuration says so.
const Family& llama_family() {
  static constexpr Family family{
      .table = [](const ModelConfig& config) { return gated_table(config, false); },
      .embedding = gated_embedding,
      .block = [](StageContext& ctx, std::span<const Weight> weights, int) { gated_block(ctx, weights, false); },
      .head = gated_head,
      .head_matrix = gated_head_matrix,
      .widths = gated_widths,
      .rotary = true};
  return family;
}

}  // namespace distzo2
