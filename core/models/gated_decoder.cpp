// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/gated_decoder.hpp"

#include "core/models/stage.hpp"

#include <string>

namespace distzo2 {
namespace {

std::vector<TensorSpec> block_tensors(const ModelConfig& c, const std::string& prefix, bool head_norms) {
  std::int64_t const q = c.heads * c.head_dim;
  std::int64_t const kv = c.kv_heads * c.head_dim;
  struct Matrix {
    const char* name;
    std::int64_t rows, cols;
    bool bias;
  };
  const Matrix matrices[] = {
      {"self_attn.q_proj", q, c.hidden, c.attention_bias},  {"self_attn.k_proj", kv, c.hidden, c.attention_bias},
      {"self_attn.v_proj", kv, c.hidden, c.attention_bias}, {"self_attn.o_proj", c.hidden, q, c.attention_bias},
      {"mlp.gate_proj", c.ffn, c.hidden, c.mlp_bias},       {"mlp.up_proj", c.ffn, c.hidden, c.mlp_bias},
      {"mlp.down_proj", c.hidden, c.ffn, c.mlp_bias}};
  std::vector<TensorSpec> tensors;
  for (const Matrix& m : matrices) tensors.push_back({prefix + m.name + ".weight", m.rows, m.cols, true});
  for (const Matrix& m : matrices) {
    if (m.bias) tensors.push_back({prefix + m.name + ".bias", 1, m.rows, false});
  }
  tensors.push_back({prefix + "input_layernorm.weight", 1, c.hidden, false});
  tensors.push_back({prefix + "post_attention_layernorm.weight", 1, c.hidden, false});
  if (head_norms) {
    tensors.push_back({prefix + "self_attn.q_norm.weight", 1, c.head_dim, false});
    tensors.push_back({prefix + "self_attn.k_norm.weight", 1, c.head_dim, false});
  }
  return tensors;
}

}  // namespace

TensorTable gated_table(const ModelConfig& config, bool head_norms) {
  std::vector<std::vector<TensorSpec>> blocks;
  blocks.push_back({{"model.embed_tokens.weight", config.vocab, config.hidden, true}});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    blocks.push_back(block_tensors(config, "model.layers." + std::to_string(i) + ".", head_norms));
  }
  std::vector<TensorSpec> head;
  if (!config.tied_head) head.push_back({"lm_head.weight", config.vocab, config.hidden, true});
  head.push_back({"model.norm.weight", 1, config.hidden, false});
  blocks.push_back(head);
  return make_tensor_table(blocks);
}

void gated_embedding(StageContext& ctx, std::span<const Weight> weights) {
  ctx.backend.lookup_rows(ctx.hidden, ctx.batch.ids, weights[0], false);
}

void gated_block(StageContext& ctx, std::span<const Weight> weights, bool head_norms) {
  const ModelConfig& c = ctx.config;
  const int head_dim = static_cast<int>(c.head_dim);
  const int q_features = static_cast<int>(c.heads) * head_dim;
  const int kv_features = static_cast<int>(c.kv_heads) * head_dim;
  const int ffn = static_cast<int>(c.ffn);
  const Weight &wq = weights[0], &wk = weights[1], &wv = weights[2], &wo = weights[3];
  const Weight &w_gate = weights[4], &w_up = weights[5], &w_down = weights[6];

  VectorCursor vectors(ctx.backend.vectors(weights), 7);
  const float* const bq = vectors.take(c.attention_bias);
  const float* const bk = vectors.take(c.attention_bias);
  const float* const bv = vectors.take(c.attention_bias);
  const float* const bo = vectors.take(c.attention_bias);
  const float* const b_gate = vectors.take(c.mlp_bias);
  const float* const b_up = vectors.take(c.mlp_bias);
  const float* const b_down = vectors.take(c.mlp_bias);
  const float* const attention_norm = vectors.take(true);
  const float* const mlp_norm = vectors.take(true);
  const float* const q_norm = vectors.take(head_norms);
  const float* const k_norm = vectors.take(head_norms);

  const Rows branch = branch_rows(ctx);
  ctx.backend.rms_norm(branch, ctx.hidden, attention_norm, branch.features);
  const Rows qkv = wide_rows(ctx, q_features + 2 * kv_features);
  const Rows q = qkv.columns(0, q_features);
  const Rows k = qkv.columns(q_features, kv_features);
  const Rows v = qkv.columns(q_features + kv_features, kv_features);
  linear(ctx, {{q, wq, bq}, {k, wk, bk}, {v, wv, bv}}, branch);
  if (head_norms) {
    ctx.backend.rms_norm(q, q, q_norm, head_dim);
    ctx.backend.rms_norm(k, k, k_norm, head_dim);
  }
  ctx.backend.rotate(qkv.columns(0, q_features + kv_features));
  linear(ctx, {{ctx.hidden, wo, bo, true}}, attend(ctx, qkv));

  ctx.backend.rms_norm(branch, ctx.hidden, mlp_norm, branch.features);
  const Rows mlp = wide_rows(ctx, 2 * ffn);
  const Rows gate = mlp.columns(0, ffn);
  const Rows up = mlp.columns(ffn, ffn);
  linear(ctx, {{gate, w_gate, b_gate}, {up, w_up, b_up}}, branch);
  ctx.backend.silu_multiply(gate, up);
  linear(ctx, {{ctx.hidden, w_down, b_down, true}}, gate);
}

void gated_head(StageContext& ctx, std::span<const Weight> weights, std::span<const int> tokens, const Rows& out) {
  const float* const norm = ctx.backend.vectors(weights).back();
  ctx.backend.gather_rows(out, ctx.hidden, tokens);
  ctx.backend.rms_norm(out, out, norm, out.features);
}

int gated_head_matrix(const ModelConfig& config, const TensorTable& table) {
  return find_tensor(table, config.tied_head ? "model.embed_tokens.weight" : "lm_head.weight");
}

Widths gated_widths(const ModelConfig& config) {
  return {config.hidden, 2 * config.ffn};
}

}  // namespace distzo2
