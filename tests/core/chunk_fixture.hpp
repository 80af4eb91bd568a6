// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/tensor_table.hpp"

#include <string>
#include <vector>

namespace distzo2 {

/// Shaped like OPT: positions beside the embedding, biases, a tied head, a final norm in the last block.
inline TensorTable opt_like(std::int64_t vocab, std::int64_t hidden, int layers) {
  std::vector<std::vector<TensorSpec>> blocks{{{"embed", vocab, hidden, true}, {"positions", 70, hidden, true}}};
  for (int l = 0; l < layers; ++l) {
    std::vector<TensorSpec> block;
    for (const char* name : {"q", "k", "v", "o"}) block.push_back({name, hidden, hidden, true});
    block.push_back({"fc1", 4 * hidden, hidden, true});
    block.push_back({"fc2", hidden, 4 * hidden, true});
    for (const char* name : {"q_b", "k_b", "v_b", "o_b", "fc2_b", "norm", "norm_b"})
      block.push_back({name, 1, hidden, false});
    block.push_back({"fc1_b", 1, 4 * hidden, false});
    blocks.push_back(block);
  }
  blocks.push_back({{"final_norm", 1, hidden, false}, {"final_norm_b", 1, hidden, false}});
  return make_tensor_table(blocks);
}

/// Shaped like LLaMA: fewer keys than queries, gate and up, an untied head.
inline TensorTable llama_like(std::int64_t vocab, std::int64_t hidden, int layers) {
  std::vector<std::vector<TensorSpec>> blocks{{{"embed", vocab, hidden, true}}};
  for (int l = 0; l < layers; ++l)
    blocks.push_back({{"q", hidden, hidden, true},
                      {"k", hidden / 2, hidden, true},
                      {"v", hidden / 2, hidden, true},
                      {"o", hidden, hidden, true},
                      {"gate", 3 * hidden, hidden, true},
                      {"up", 3 * hidden, hidden, true},
                      {"down", hidden, 3 * hidden, true},
                      {"norm_1", 1, hidden, false},
                      {"norm_2", 1, hidden, false}});
  blocks.push_back({{"lm_head", vocab, hidden, true}, {"norm", 1, hidden, false}});
  return make_tensor_table(blocks);
}

}  // namespace distzo2
