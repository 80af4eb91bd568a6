// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/families.hpp"
#include "core/models/gated_decoder.hpp"

namespace distzo2 {

/// LLaMA 2 and 3, SmolLM2: the gated decoder, with biases where the configuration says so.
const Family& llama_family() {
  static constexpr Family family{
      [](const ModelConfig& config) { return gated_table(config, false); },
      gated_embedding,
      [](StageContext& ctx, std::span<const Weight> weights, int) { gated_block(ctx, weights, false); },
      gated_head,
      gated_head_matrix,
      gated_widths,
      true};
  return family;
}

}  // namespace distzo2
