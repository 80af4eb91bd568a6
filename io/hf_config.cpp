// SPDX-License-Identifier: BSD-3-Clause
#include "io/hf_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "io/fail.hpp"
#include "io/hf_config_keys.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

namespace {

struct FamilyRow {
  FamilyKind kind;
  const char* model_type;
  const char* architecture;
};
constexpr std::array<FamilyRow, 3> families{{{FamilyKind::opt, "opt", "OPTForCausalLM"},
                                             {FamilyKind::llama, "llama", "LlamaForCausalLM"},
                                             {FamilyKind::qwen3, "qwen3", "Qwen3ForCausalLM"}}};

constexpr std::array<std::string_view, 8> rope_keys{"rope_type",
                                                    "type",
                                                    "rope_theta",
                                                    "factor",
                                                    "low_freq_factor",
                                                    "high_freq_factor",
                                                    "original_max_position_embeddings",
                                                    "partial_rotary_factor"};

// Bounds that no model comes near, so that products of two or three extents stay far from 2^63.
constexpr std::int64_t max_vocab = 0x7FFFFFFF;
constexpr std::int64_t max_width = std::int64_t{1} << 20;
constexpr std::int64_t max_ffn = std::int64_t{1} << 24;
constexpr std::int64_t max_layers = 10'000;
constexpr std::int64_t max_heads = 1 << 16;

constexpr std::size_t max_config_bytes = std::size_t{4} << 20;

const FamilyRow& read_family(const JsonObject& config) {
  const std::string type = config.string("model_type");
  for (const FamilyRow& family : families) {
    if (type == family.model_type) {
      return family;
    }
  }
  config.refuse("model_type", "opt, llama and qwen3 are accepted");
}

void check_architecture(const JsonObject& config, const FamilyRow& family) {
  if (!config.has("architectures")) {
    return;
  }
  const nlohmann::json& list = config.array("architectures");
  if (list.size() != 1 || !list[0].is_string() || list[0].get<std::string>() != family.architecture) {
    config.refuse("architectures",
                  fmt::format("[\"{}\"] is accepted for model_type {}", family.architecture, family.model_type));
  }
}

/// `key` must be absent, null, or have the value under which the mathematics is what is implemented.
void demand_string(const JsonObject& config, const char* key, const std::string& value) {
  if (config.string_or(key, value) != value) {
    config.refuse(key, fmt::format("only \"{}\" is implemented", value));
  }
}

double positive(const JsonObject& object, const char* key) {
  const double v = object.number(key);
  if (v <= 0.0) {
    object.refuse(key, "a number above 0 was expected");
  }
  return v;
}

/// What is added to a mean square, in fp32 too: published models have 1e-6 or 1e-5.
double norm_epsilon(const JsonObject& config, const char* key) {
  const double v = config.number(key);
  if (v < 1e-30 || v > 1.0) {
    config.refuse(key, "a number from 1e-30 to 1 was expected");
  }
  return v;
}

/// Angles fall with powers of it: 10000 in the first models, 500000 and more in later ones.
double rope_base(const JsonObject& object) {
  const double v = object.number("rope_theta");
  if (v <= 1.0 || v > 1e12) {
    object.refuse("rope_theta", "a number above 1 and up to 1e12 was expected");
  }
  return v;
}

/// `rope_scaling` of older files, `rope_parameters` of newer ones.
RopeConfig parse_rope(const JsonObject& config, const JsonObject& rope, double theta) {
  for (const auto& [key, value] : rope.raw().items()) {
    if (std::ranges::find(rope_keys, key) == rope_keys.end()) {
      rope.refuse(key, fmt::format("known keys are {}", fmt::join(rope_keys, ", ")));
    }
  }
  if (rope.number_or("partial_rotary_factor", 1.0) != 1.0) {
    rope.refuse("partial_rotary_factor", "only 1 is implemented");
  }
  RopeConfig result;
  result.theta = rope.has("rope_theta") ? rope_base(rope) : theta;
  const char* type_key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.string_or(type_key, "default");
  if (rope.string_or("type", type) != type) {
    rope.refuse("type", fmt::format("rope_type beside it is \"{}\"; keep one of them", type));
  }
  if (type == "default") {
    return result;
  }
  if (type != "llama3") {
    rope.refuse(type_key, "rotary embeddings of type \"default\" and \"llama3\" are implemented");
  }
  result.llama3_scaling = true;
  result.factor = positive(rope, "factor");
  result.low_freq_factor = positive(rope, "low_freq_factor");
  result.high_freq_factor = positive(rope, "high_freq_factor");
  const JsonObject& with_original = rope.has("original_max_position_embeddings") ? rope : config;
  if (!with_original.has("original_max_position_embeddings")) {
    rope.refuse("original_max_position_embeddings", "a number of at least 1 was expected");
  }
  result.original_max_positions =
      static_cast<double>(with_original.integer("original_max_position_embeddings", 1, INT32_MAX));
  if (result.low_freq_factor >= result.high_freq_factor) {
    rope.refuse("high_freq_factor", "a number above low_freq_factor was expected");
  }
  return result;
}

bool same_rope(const RopeConfig& a, const RopeConfig& b) {
  return a.theta == b.theta && a.llama3_scaling == b.llama3_scaling && a.factor == b.factor &&
         a.low_freq_factor == b.low_freq_factor && a.high_freq_factor == b.high_freq_factor &&
         a.original_max_positions == b.original_max_positions;
}

RopeConfig read_rope(const JsonObject& config) {
  const bool newer = config.has("rope_parameters");
  RopeConfig rope;
  const double theta = config.has("rope_theta") ? rope_base(config) : rope.theta;
  rope.theta = theta;
  if (newer) {
    rope = parse_rope(config, config.object("rope_parameters"), theta);
  }
  if (config.has("rope_theta") && rope.theta != theta) {
    config.refuse("rope_theta", "rope_parameters beside it says something else; keep one of them");
  }
  if (config.has("rope_scaling")) {
    const RopeConfig older = parse_rope(config, config.object("rope_scaling"), rope.theta);
    if (newer && !same_rope(older, rope)) {
      config.refuse("rope_scaling", "rope_parameters beside it says something else; keep one of them");
    }
    rope = older;
  }
  return rope;
}

void read_opt(const JsonObject& config, ModelConfig& m) {
  demand_string(config, "activation_function", "relu");
  m.ffn = config.integer("ffn_dim", 1, max_ffn);
  m.embed_dim = config.integer_or("word_embed_proj_dim", m.hidden, 1, max_width);
  m.norm_before = config.boolean_or("do_layer_norm_before", true);
  m.final_norm = m.norm_before && !config.boolean_or("_remove_final_layer_norm", false);
  m.enable_bias = config.boolean_or("enable_bias", true);
  m.norm_affine = config.boolean_or("layer_norm_elementwise_affine", true);
  m.tied_head = config.boolean_or("tie_word_embeddings", true);
  m.norm_eps = 1e-5;
}

void read_llama_like(const JsonObject& config, ModelConfig& m) {
  demand_string(config, "hidden_act", "silu");
  m.ffn = config.integer("intermediate_size", 1, max_ffn);
  m.norm_eps = config.has("rms_norm_eps") ? norm_epsilon(config, "rms_norm_eps") : 1e-6;
  m.tied_head = config.boolean_or("tie_word_embeddings", false);
  m.rope = read_rope(config);
  if (m.family == FamilyKind::llama) {
    m.attention_bias = config.boolean_or("attention_bias", false);
    m.mlp_bias = config.boolean_or("mlp_bias", false);
  }
}

/// kv_heads and head_dim, and that the heads fit together.
void read_heads(const JsonObject& config, ModelConfig& m) {
  m.heads = config.integer("num_attention_heads", 1, max_heads);
  m.kv_heads = m.family == FamilyKind::opt ? m.heads : config.integer_or("num_key_value_heads", m.heads, 1, max_heads);
  if (m.heads % m.kv_heads != 0) {
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads, {}, was expected", m.heads));
  }
  if (m.family != FamilyKind::opt && config.has("head_dim")) {
    m.head_dim = config.integer("head_dim", 1, max_width);
  } else if (m.family == FamilyKind::qwen3) {
    m.head_dim = 128;
  } else {
    if (m.hidden % m.heads != 0) {
      config.refuse("num_attention_heads", fmt::format("a divisor of hidden_size, {}, was expected", m.hidden));
    }
    m.head_dim = m.hidden / m.heads;
  }
  if (m.heads * m.head_dim > max_width) {
    config.refuse("num_attention_heads",
                  fmt::format("{} heads of {} are more than the {} that are accepted", m.heads, m.head_dim, max_width));
  }
  if (m.family != FamilyKind::opt && m.head_dim % 2 != 0) {
    config.refuse("head_dim", fmt::format("rotary embeddings need an even number, not {}", m.head_dim));
  }
}

}  // namespace

ModelConfig parse_model_config(const nlohmann::json& json, const std::string& file) {
  const JsonObject config(json, file);
  const FamilyRow& family = read_family(config);
  check_architecture(config, family);
  refuse_other_arithmetic(config, family.kind);

  ModelConfig m;
  m.family = family.kind;
  m.architecture = family.architecture;
  m.vocab = config.integer("vocab_size", 1, max_vocab);
  m.hidden = config.integer("hidden_size", 1, max_width);
  m.layers = config.integer("num_hidden_layers", 1, max_layers);
  m.max_positions = config.integer("max_position_embeddings", 1, INT32_MAX);
  read_heads(config, m);
  if (m.family == FamilyKind::opt) {
    read_opt(config, m);
  } else {
    read_llama_like(config, m);
  }
  return m;
}

ModelConfig read_model_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  std::error_code ec;
  if (!std::filesystem::is_directory(folder, ec)) {
    fail(folder, "no such folder; a model is a Hugging Face folder with config.json and safetensors files");
  }
  return parse_model_config(read_json_file(file, {.max_bytes = max_config_bytes}), file.string());
}

std::vector<std::string> unknown_config_keys(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const nlohmann::json config = read_json_file(file, {.max_bytes = max_config_bytes});
  return unknown_keys(JsonObject(config, file.string()));
}

}  // namespace distzo2
