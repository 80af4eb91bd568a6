// SPDX-License-Identifier: BSD-3-Clause
#include "io/hf_config.hpp"

#include <gtest/gtest.h>

#include "io/json_file.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace distzo2;
using nlohmann::json;

// The mathematical keys of published models' config.json.
const char* const opt_350m =
    R"({"architectures": ["OPTForCausalLM"], "model_type": "opt", "activation_function": "relu",
  "_remove_final_layer_norm": false, "do_layer_norm_before": false, "ffn_dim": 4096, "hidden_size": 1024, "num_hidden_layers": 24,
  "num_attention_heads": 16, "max_position_embeddings": 2048, "vocab_size": 50272, "word_embed_proj_dim": 512,
  "torch_dtype": "float16", "layerdrop": 0.0, "dropout": 0.1, "prefix": "</s>"})";
const char* const llama_31_8b =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072, "mlp_bias": false,
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
  "rope_type": "llama3"}, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256})";
const char* const qwen3_06b = R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 40960,
  "max_window_layers": 28, "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
  "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false,
  "vocab_size": 151936})";

ModelConfig parse(const json& config) {
  return parse_model_config(config, "config.json");
}

/// `base` with some keys replaced; a key set to null counts as absent.
json changed(const char* base, const json& changes) {
  json config = json::parse(base);
  config.update(changes);
  return config;
}

std::string refusal(const char* base, const json& changes) {
  const std::string message = file_error([&] { parse(changed(base, changes)); });
  expect_contains(message, "config.json: key \"");
  return message;
}

TEST(HfConfig, reads_opt_350m_with_its_oddities) {
  const ModelConfig m = parse(json::parse(opt_350m));
  EXPECT_EQ(m.family, FamilyKind::opt);
  EXPECT_EQ(m.architecture, "OPTForCausalLM");
  EXPECT_EQ(m.vocab, 50272);
  EXPECT_EQ(m.hidden, 1024);
  EXPECT_EQ(m.layers, 24);
  EXPECT_EQ(m.heads, 16);
  EXPECT_EQ(m.kv_heads, 16);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.ffn, 4096);
  EXPECT_EQ(m.max_positions, 2048);
  EXPECT_EQ(m.embed_dim, 512);
  EXPECT_FALSE(m.norm_before);
  EXPECT_FALSE(m.final_norm);
  EXPECT_TRUE(m.enable_bias);
  EXPECT_TRUE(m.norm_affine);
  EXPECT_TRUE(m.tied_head);
  EXPECT_EQ(m.norm_eps, 1e-5);
}

TEST(HfConfig, gives_opt_its_final_norm_unless_it_was_removed) {
  EXPECT_TRUE(parse(changed(opt_350m, {{"do_layer_norm_before", true}})).final_norm);
  EXPECT_FALSE(
      parse(changed(opt_350m, {{"do_layer_norm_before", true}, {"_remove_final_layer_norm", true}})).final_norm);
  EXPECT_EQ(parse(changed(opt_350m, {{"word_embed_proj_dim", nullptr}})).embed_dim, 1024);
}

TEST(HfConfig, reads_llama_3_in_the_old_and_the_new_style) {
  json newer = json::parse(llama_31_8b);
  newer["rope_parameters"] = newer["rope_scaling"];
  newer["rope_parameters"]["rope_theta"] = newer["rope_theta"];
  newer.erase("rope_scaling");
  newer.erase("rope_theta");
  json typed = json::parse(llama_31_8b);
  typed["rope_scaling"]["type"] = "llama3";
  json both = newer;
  both["rope_scaling"] = json::parse(llama_31_8b)["rope_scaling"];
  for (const json& config : {json::parse(llama_31_8b), newer, typed, both}) {
    const ModelConfig m = parse(config);
    EXPECT_EQ(m.family, FamilyKind::llama);
    EXPECT_EQ(m.heads, 32);
    EXPECT_EQ(m.kv_heads, 8);
    EXPECT_EQ(m.head_dim, 128);
    EXPECT_EQ(m.norm_eps, 1e-5);
    EXPECT_FALSE(m.tied_head);
    EXPECT_EQ(m.rope.theta, 500000.0);
    EXPECT_TRUE(m.rope.llama3_scaling);
    EXPECT_EQ(m.rope.factor, 8.0);
    EXPECT_EQ(m.rope.low_freq_factor, 1.0);
    EXPECT_EQ(m.rope.high_freq_factor, 4.0);
    EXPECT_EQ(m.rope.original_max_positions, 8192.0);
  }
}

TEST(HfConfig, reads_qwen3_whose_heads_are_wider_than_hidden) {
  const ModelConfig m = parse(json::parse(qwen3_06b));
  EXPECT_EQ(m.family, FamilyKind::qwen3);
  EXPECT_EQ(m.heads * m.head_dim, 2048);
  EXPECT_EQ(m.hidden, 1024);
  EXPECT_EQ(m.kv_heads, 8);
  EXPECT_TRUE(m.tied_head);
  EXPECT_EQ(m.rope.theta, 1e6);
  EXPECT_FALSE(m.rope.llama3_scaling);
  EXPECT_EQ(m.norm_eps, 1e-6);
}

TEST(HfConfig, fills_in_what_older_llama_files_leave_out) {
  const ModelConfig m = parse(changed(llama_31_8b, {{"num_key_value_heads", nullptr},
                                                    {"rope_theta", nullptr},
                                                    {"rope_scaling", nullptr},
                                                    {"rms_norm_eps", nullptr},
                                                    {"tie_word_embeddings", nullptr},
                                                    {"architectures", nullptr}}));
  EXPECT_EQ(m.kv_heads, 32);
  EXPECT_EQ(m.rope.theta, 10000.0);
  EXPECT_FALSE(m.rope.llama3_scaling);
  EXPECT_EQ(m.norm_eps, 1e-6);
  EXPECT_FALSE(m.tied_head);
}

TEST(HfConfig, refuses_unknown_families_by_name) {
  expect_contains(refusal(llama_31_8b, {{"model_type", "mamba2"}}),
                  "\"model_type\" is \"mamba2\"; opt, llama and qwen3 are accepted");
  expect_contains(refusal(llama_31_8b, {{"model_type", "qwen3_moe"}}), "qwen3_moe");
  expect_contains(refusal(llama_31_8b, {{"architectures", {"LlamaForSequenceClassification"}}}),
                  "[\"LlamaForCausalLM\"] is accepted for model_type llama");
  expect_contains(file_error([] { parse(json::object()); }), "\"model_type\" is missing");
}

TEST(HfConfig, refuses_settings_that_are_not_implemented) {
  expect_contains(refusal(llama_31_8b, {{"hidden_act", "gelu"}}), "\"hidden_act\" is \"gelu\"; only \"silu\"");
  expect_contains(refusal(opt_350m, {{"activation_function", "gelu"}}), "only \"relu\"");
  expect_contains(refusal(llama_31_8b, {{"pretraining_tp", 2}}), "\"pretraining_tp\" is 2; only 1");
  expect_contains(refusal(llama_31_8b, {{"quantization_config", {{"quant_method", "fp8"}}}}), "quantised weights");
  expect_contains(refusal(llama_31_8b, {{"num_local_experts", 8}}), "mixtures of experts");
  expect_contains(refusal(qwen3_06b, {{"use_sliding_window", true}}), "\"use_sliding_window\" is true; only false");
  expect_contains(refusal(qwen3_06b, {{"layer_types", {"full_attention", "sliding_attention"}}}), "full_attention");
  expect_contains(refusal(qwen3_06b, {{"attention_bias", true}}), "\"attention_bias\" is true; only false");
  expect_contains(refusal(llama_31_8b, {{"partial_rotary_factor", 0.5}}), "only 1");
  EXPECT_TRUE(parse(changed(llama_31_8b, {{"attention_bias", true}})).attention_bias);
  EXPECT_TRUE(parse(changed(llama_31_8b, {{"mlp_bias", true}})).mlp_bias);
}

TEST(HfConfig, refuses_keys_of_other_models_that_change_the_arithmetic) {
  for (const auto& [key, value] : std::vector<std::pair<const char*, json>>{{"sliding_window", 4096},
                                                                            {"logit_scale", 0.0625},
                                                                            {"final_logit_softcapping", 30.0},
                                                                            {"attn_logit_softcapping", 50.0},
                                                                            {"query_pre_attn_scalar", 256},
                                                                            {"residual_multiplier", 0.22},
                                                                            {"embedding_multiplier", 12.0},
                                                                            {"logits_scaling", 16.0},
                                                                            {"clip_qkv", 8.0},
                                                                            {"alibi", true},
                                                                            {"no_rope_layers", {1, 1, 0}},
                                                                            {"rope_interleaved", true}}) {
    expect_contains(refusal(llama_31_8b, {{key, value}}),
                    std::string("\"") + key + "\" is " + value.dump() + "; only ");
  }
  expect_contains(refusal(qwen3_06b, {{"mlp_bias", true}}), "\"mlp_bias\" is true; only false");
  EXPECT_EQ(parse(changed(qwen3_06b, {{"sliding_window", 4096}, {"logit_scale", 1}, {"alibi", false}})).hidden, 1024);
}

TEST(HfConfig, knows_the_keys_of_published_models_and_names_the_others) {
  const TemporaryFolder folder;
  for (const char* text : {opt_350m, llama_31_8b, qwen3_06b}) {
    folder.write("config.json", text);
    EXPECT_EQ(unknown_config_keys(folder.path()), std::vector<std::string>{});
  }
  folder.write("config.json", changed(opt_350m, {{"warp", 2}, {"flux", nullptr}}).dump());
  EXPECT_EQ(unknown_config_keys(folder.path()), (std::vector<std::string>{"flux", "warp"}));
}

TEST(HfConfig, refuses_rotary_settings_that_it_does_not_know) {
  const auto with = [](const json& scaling) { return json{{"rope_scaling", scaling}}; };
  expect_contains(refusal(llama_31_8b, with({{"rope_type", "yarn"}, {"factor", 4.0}})),
                  "\"rope_scaling.rope_type\" is \"yarn\"; rotary embeddings of type \"default\" and \"llama3\"");
  expect_contains(refusal(llama_31_8b, with({{"type", "linear"}, {"factor", 2.0}})),
                  "\"rope_scaling.type\" is \"linear\"");
  expect_contains(refusal(llama_31_8b, with({{"type", "default"}, {"rope_type", "llama3"}})), "keep one of them");
  expect_contains(refusal(llama_31_8b, with({{"full_attention", {{"rope_type", "default"}}}})), "known keys are");
  expect_contains(refusal(llama_31_8b, with({{"rope_type", "llama3"}, {"factor", 8.0}})),
                  "low_freq_factor\" is missing");
  expect_contains(refusal(llama_31_8b, {{"rope_parameters", {{"rope_theta", 10000.0}, {"rope_type", "default"}}}}),
                  "\"rope_theta\" is 500000.0; rope_parameters beside it");
  expect_contains(refusal(llama_31_8b, {{"rope_parameters", {{"rope_theta", 500000.0}, {"rope_type", "default"}}}}),
                  "\"rope_scaling\" is");
  json equal_factors = json::parse(llama_31_8b)["rope_scaling"];
  equal_factors["high_freq_factor"] = 1.0;
  expect_contains(refusal(llama_31_8b, with(equal_factors)), "above low_freq_factor");
}

TEST(HfConfig, refuses_dimensions_that_are_out_of_bounds_or_do_not_fit) {
  for (const char* key : {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "intermediate_size", "max_position_embeddings"}) {
    for (const json& value : {json(0), json(-1), json(std::int64_t{1} << 62), json(1.5), json("8")}) {
      expect_contains(refusal(llama_31_8b, {{key, value}}), std::string("\"") + key + "\" is " + value.dump());
    }
  }
  expect_contains(refusal(llama_31_8b, {{"hidden_size", nullptr}}), "\"hidden_size\" is null; an integer");
  expect_contains(refusal(llama_31_8b, {{"num_key_value_heads", 5}}), "a divisor of num_attention_heads, 32");
  expect_contains(refusal(llama_31_8b, {{"num_attention_heads", 24}}), "a divisor of hidden_size, 4096");
  expect_contains(refusal(llama_31_8b, {{"head_dim", 127}}), "even number");
  expect_contains(refusal(llama_31_8b, {{"head_dim", 1 << 20}}), "more than the 1048576");
}

TEST(HfConfig, refuses_numbers_that_no_model_has) {
  for (const json& value : {json(0), json(-1e-5), json(1e-31), json(1.5), json(1e300), json("1e-5")})
    expect_contains(refusal(llama_31_8b, {{"rms_norm_eps", value}}),
                    "\"rms_norm_eps\" is " + value.dump() + "; a number");
  for (const json& value : {json(0), json(-500000.0), json(1), json(0.5), json(1e13), json(true)}) {
    expect_contains(refusal(llama_31_8b, {{"rope_theta", value}}), "\"rope_theta\" is " + value.dump() + "; a number");
    expect_contains(refusal(qwen3_06b, {{"rope_theta", nullptr}, {"rope_parameters", {{"rope_theta", value}}}}),
                    "\"rope_parameters.rope_theta\" is " + value.dump() + "; a number");
  }
  expect_contains(refusal(llama_31_8b, {{"rms_norm_eps", 2}}), "a number from 1e-30 to 1 was expected");
  expect_contains(refusal(llama_31_8b, {{"rope_theta", 1}}), "a number above 1 and up to 1e12 was expected");
}

TEST(HfConfig, names_a_folder_or_file_that_is_missing) {
  const TemporaryFolder folder;
  expect_contains(file_error([&] { read_model_config(folder / "none"); }), "none: no such folder");
  expect_contains(file_error([&] { read_model_config(folder.path()); }), "config.json: no such file");
  folder.write("config.json", llama_31_8b);
  EXPECT_EQ(read_model_config(folder.path()).vocab, 128256);
}

}  // namespace
