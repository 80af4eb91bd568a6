// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace distzo2 {

enum class FamilyKind : std::uint8_t { opt, llama, qwen3 };

/// Rotary embedding: theta^(-2i/head_dim) frequencies, optionally with Llama-3's piecewise scaling.
struct RopeConfig {
  double theta = 10000.0;
  bool llama3_scaling = false;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_positions = 8192.0;
};

/// Everything of a model folder's config.json that the mathematics depends on. Filled by io/hf_config, checked there.
struct ModelConfig {
  FamilyKind family = FamilyKind::llama;
  std::string architecture;  // e.g. "LlamaForCausalLM", as config.json states it
  std::int64_t vocab = 0;    // rows of the embedding
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // heads * head_dim need not be hidden (Qwen3)
  std::int64_t ffn = 0;
  std::int64_t max_positions = 0;
  double norm_eps = 1e-5;       // RMSNorm or LayerNorm
  bool tied_head = false;       // lm_head is the embedding: one tensor, one z
  bool attention_bias = false;  // LLaMA only
  bool mlp_bias = false;        // LLaMA only
  RopeConfig rope;              // LLaMA, Qwen3
  // OPT only:
  std::int64_t embed_dim = 0;  // word_embed_proj_dim; differs from hidden in 350m (project_in / project_out)
  bool norm_before = true;     // do_layer_norm_before; false in 350m
  bool final_norm = true;      // a final_layer_norm exists
  bool enable_bias = true;
  bool norm_affine = true;  // layer_norm_elementwise_affine
};

}  // namespace distzo2
