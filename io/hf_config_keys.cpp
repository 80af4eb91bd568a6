// SPDX-License-Identifier: BSD-3-Clause
#include "io/hf_config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace distzo2 {

namespace {

/// A key that must be absent, null, or say `neutral` (JSON): under any other value the arithmetic is another one.
struct NeutralKey {
  const char* key;
  const char* neutral;
  std::optional<FamilyKind> family = {};  // of these models only
};
constexpr std::array neutral_keys{
    // attention
    NeutralKey{"use_sliding_window", "false"},
    NeutralKey{"sliding_window", "null", FamilyKind::llama},  // Qwen3 has use_sliding_window beside it
    NeutralKey{"sliding_window_pattern", "null"},
    NeutralKey{"attention_chunk_size", "null"},
    NeutralKey{"no_rope_layers", "null"},
    NeutralKey{"alibi", "false"},
    NeutralKey{"use_qk_norm", "false"},
    NeutralKey{"qk_norm", "false"},
    NeutralKey{"clip_qkv", "null"},
    NeutralKey{"parallel_attn", "false"},
    NeutralKey{"is_encoder_decoder", "false"},
    NeutralKey{"add_cross_attention", "false"},
    NeutralKey{"query_pre_attn_scalar", "null"},
    NeutralKey{"attention_multiplier", "null"},
    NeutralKey{"attn_logit_softcapping", "null"},
    // rotary embedding
    NeutralKey{"partial_rotary_factor", "1"},
    NeutralKey{"rotary_pct", "1"},
    NeutralKey{"rope_interleaved", "false"},
    // biases that the family does not have
    NeutralKey{"attention_bias", "false", FamilyKind::qwen3},
    NeutralKey{"mlp_bias", "false", FamilyKind::qwen3},
    NeutralKey{"qkv_bias", "false"},
    NeutralKey{"lm_head_bias", "false"},
    // factors and limits
    NeutralKey{"embedding_multiplier", "1"},
    NeutralKey{"residual_multiplier", "1"},
    NeutralKey{"logits_scaling", "1"},
    NeutralKey{"logit_scale", "1"},
    NeutralKey{"scale_emb", "1"},
    NeutralKey{"scale_depth", "null"},
    NeutralKey{"dim_model_base", "null"},
    NeutralKey{"final_logit_softcapping", "null"},
    NeutralKey{"normalize_embedding", "false"},
    // how weights are held
    NeutralKey{"pretraining_tp", "1"},
};

/// Keys that io/hf_config reads, and those that only other uses of a model look at.
constexpr auto known_keys = std::to_array<std::string_view>({"_attn_implementation",
                                                             "_name_or_path",
                                                             "_remove_final_layer_norm",
                                                             "activation_dropout",
                                                             "activation_function",
                                                             "architectures",
                                                             "attention_bias",
                                                             "attention_dropout",
                                                             "attn_implementation",
                                                             "auto_map",
                                                             "bad_words_ids",
                                                             "begin_suppress_tokens",
                                                             "bos_token_id",
                                                             "chunk_size_feed_forward",
                                                             "decoder_start_token_id",
                                                             "do_layer_norm_before",
                                                             "dropout",
                                                             "dtype",
                                                             "enable_bias",
                                                             "eos_token_id",
                                                             "ffn_dim",
                                                             "finetuning_task",
                                                             "forced_bos_token_id",
                                                             "forced_eos_token_id",
                                                             "gradient_checkpointing",
                                                             "head_dim",
                                                             "hidden_act",
                                                             "hidden_size",
                                                             "id2label",
                                                             "init_std",
                                                             "initializer_range",
                                                             "intermediate_size",
                                                             "is_decoder",
                                                             "is_llama_config",
                                                             "label2id",
                                                             "layer_norm_elementwise_affine",
                                                             "layer_types",
                                                             "layerdrop",
                                                             "max_length",
                                                             "max_position_embeddings",
                                                             "max_window_layers",
                                                             "mlp_bias",
                                                             "model_type",
                                                             "num_attention_heads",
                                                             "num_experts",
                                                             "num_hidden_layers",
                                                             "num_key_value_heads",
                                                             "num_local_experts",
                                                             "original_max_position_embeddings",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "pad_token_id",
                                                             "prefix",
                                                             "problem_type",
                                                             "quantization_config",
                                                             "resid_pdrop",
                                                             "return_dict",
                                                             "rms_norm_eps",
                                                             "rope_parameters",
                                                             "rope_scaling",
                                                             "rope_theta",
                                                             "sliding_window",
                                                             "task_specific_params",
                                                             "tie_word_embeddings",
                                                             "tokenizer_class",
                                                             "torch_dtype",
                                                             "transformers.js_config",
                                                             "transformers_version",
                                                             "use_cache",
                                                             "vocab_size",
                                                             "word_embed_proj_dim"});
static_assert(std::ranges::is_sorted(known_keys));

}  // namespace

void refuse_other_arithmetic(const JsonObject& config, FamilyKind family) {
  for (const NeutralKey& row : neutral_keys) {
    const bool concerned = !row.family || *row.family == family;
    if (concerned && config.has(row.key) && config.value(row.key) != nlohmann::json::parse(row.neutral)) {
      config.refuse(row.key, fmt::format("only {} is implemented", row.neutral));
    }
  }
  if (config.has("quantization_config")) {
    config.refuse("quantization_config", "quantised weights are not read; use the model's bf16, fp16 or fp32 weights");
  }
  for (const char* key : {"num_experts", "num_local_experts"}) {
    if (config.integer_or(key, 0, 0, INT64_MAX) > 1) {
      config.refuse(key, "mixtures of experts are not implemented; dense models are");
    }
  }
  if (config.has("layer_types")) {
    for (const nlohmann::json& type : config.array("layer_types")) {
      if (!type.is_string() || type.get<std::string>() != "full_attention") {
        config.refuse("layer_types", "only \"full_attention\" is implemented for every layer");
      }
    }
  }
}

std::vector<std::string> unknown_keys(const JsonObject& config) {
  std::vector<std::string> unknown;
  for (const auto& item : config.raw().items()) {
    const std::string& key = item.key();
    const bool neutral = std::ranges::any_of(neutral_keys, [&](const NeutralKey& row) { return key == row.key; });
    if (!neutral && !std::ranges::binary_search(known_keys, std::string_view(key))) {
      unknown.push_back(key);
    }
  }
  return unknown;
}

}  // namespace distzo2
