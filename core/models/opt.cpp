// SPDX-License-Identifier: BSD-3-Clause
#include "core/error.hpp"
#include "core/models/families.hpp"
#include "core/models/stage.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {
namespace {

constexpr int position_offset = 2;  // the position table's first two rows are never read

bool projected(const ModelConfig& c) {
  return c.embed_dim != c.hidden;
}

/// A block's tensors: q k v o, fc1 fc2; then their biases in the same order; then weight and bias of the norm of
/// attention and of the norm of the MLP.
std::vector<TensorSpec> block_tensors(const ModelConfig& c, const std::string& prefix) {
  struct Matrix {
    const char* name;
    std::int64_t rows, cols;
  };
  const Matrix matrices[] = {{"self_attn.q_proj", c.hidden, c.hidden},
                             {"self_attn.k_proj", c.hidden, c.hidden},
                             {"self_attn.v_proj", c.hidden, c.hidden},
                             {"self_attn.out_proj", c.hidden, c.hidden},
                             {"fc1", c.ffn, c.hidden},
                             {"fc2", c.hidden, c.ffn}};
  std::vector<TensorSpec> tensors;
  for (const Matrix& m : matrices) tensors.push_back({prefix + m.name + ".weight", m.rows, m.cols, true});
  for (const Matrix& m : matrices) {
    if (c.enable_bias) tensors.push_back({prefix + m.name + ".bias", 1, m.rows, false});
  }
  for (const char* const name : {"self_attn_layer_norm", "final_layer_norm"}) {
    if (!c.norm_affine) continue;
    tensors.push_back({prefix + name + ".weight", 1, c.hidden, false});
    tensors.push_back({prefix + name + ".bias", 1, c.hidden, false});
  }
  return tensors;
}

/// Embedding block: token table, position table, project_in. Head block: lm_head unless tied, project_out, final norm.
TensorTable opt_table(const ModelConfig& c) {
  std::vector<std::vector<TensorSpec>> blocks;
  blocks.push_back({{"model.decoder.embed_tokens.weight", c.vocab, c.embed_dim, true},
                    {"model.decoder.embed_positions.weight", c.max_positions + position_offset, c.hidden, true}});
  if (projected(c)) blocks[0].push_back({"model.decoder.project_in.weight", c.hidden, c.embed_dim, true});
  for (std::int64_t i = 0; i < c.layers; ++i) {
    blocks.push_back(block_tensors(c, "model.decoder.layers." + std::to_string(i) + "."));
  }
  std::vector<TensorSpec> head;
  if (!c.tied_head) head.push_back({"lm_head.weight", c.vocab, c.embed_dim, true});
  if (projected(c)) head.push_back({"model.decoder.project_out.weight", c.embed_dim, c.hidden, true});
  if (c.final_norm && c.norm_affine) {
    head.push_back({"model.decoder.final_layer_norm.weight", 1, c.hidden, false});
    head.push_back({"model.decoder.final_layer_norm.bias", 1, c.hidden, false});
  }
  blocks.push_back(head);
  return make_tensor_table(blocks);
}

void opt_embedding(StageContext& ctx, std::span<const Weight> weights) {
  std::int64_t const longest = std::ranges::max(ctx.batch.positions) + std::int64_t{1};
  if (longest > ctx.config.max_positions) {
    throw Error(ExitCode::usage, "a sequence of " + std::to_string(longest) + " tokens: the model takes at most " +
                                     std::to_string(ctx.config.max_positions) + " (max_position_embeddings)");
  }
  std::vector<std::int32_t>& rows = ctx.position_rows;
  rows.assign(ctx.batch.positions.begin(), ctx.batch.positions.end());
  for (std::int32_t& row : rows) row += position_offset;
  if (projected(ctx.config)) {
    const Rows narrow = wide_rows(ctx, ctx.config.embed_dim);
    ctx.backend.lookup_rows(narrow, ctx.batch.ids, weights[0], false);
    linear(ctx, {{ctx.hidden, weights[2]}}, narrow);
  } else {
    ctx.backend.lookup_rows(ctx.hidden, ctx.batch.ids, weights[0], false);
  }
  ctx.backend.lookup_rows(ctx.hidden, rows, weights[1], true);
}

void opt_block(StageContext& ctx, std::span<const Weight> weights, int) {
  const ModelConfig& c = ctx.config;
  const int hidden = static_cast<int>(c.hidden);
  const Weight &wq = weights[0], &wk = weights[1], &wv = weights[2], &wo = weights[3];
  const Weight &w1 = weights[4], &w2 = weights[5];

  VectorCursor vectors(ctx.backend.vectors(weights), 6);
  const float* const bq = vectors.take(c.enable_bias);
  const float* const bk = vectors.take(c.enable_bias);
  const float* const bv = vectors.take(c.enable_bias);
  const float* const bo = vectors.take(c.enable_bias);
  const float* const b1 = vectors.take(c.enable_bias);
  const float* const b2 = vectors.take(c.enable_bias);
  const float* const attention_norm = vectors.take(c.norm_affine);
  const float* const attention_norm_bias = vectors.take(c.norm_affine);
  const float* const mlp_norm = vectors.take(c.norm_affine);
  const float* const mlp_norm_bias = vectors.take(c.norm_affine);

  // 350m reads the residual stream as it is and normalises it after each addition.
  const Rows branch = branch_rows(ctx);
  const Rows input = c.norm_before ? branch : ctx.hidden;
  if (c.norm_before) ctx.backend.layer_norm(branch, ctx.hidden, attention_norm, attention_norm_bias);
  const Rows qkv = wide_rows(ctx, 3 * hidden);
  linear(ctx,
         {{qkv.columns(0, hidden), wq, bq},
          {qkv.columns(hidden, hidden), wk, bk},
          {qkv.columns(2 * hidden, hidden), wv, bv}},
         input);
  linear(ctx, {{ctx.hidden, wo, bo, true}}, attend(ctx, qkv));
  if (!c.norm_before) ctx.backend.layer_norm(ctx.hidden, ctx.hidden, attention_norm, attention_norm_bias);

  if (c.norm_before) ctx.backend.layer_norm(branch, ctx.hidden, mlp_norm, mlp_norm_bias);
  const Rows mlp = wide_rows(ctx, c.ffn);
  linear(ctx, {{mlp, w1, b1}}, input);
  ctx.backend.relu(mlp);
  linear(ctx, {{ctx.hidden, w2, b2, true}}, mlp);
  if (!c.norm_before) ctx.backend.layer_norm(ctx.hidden, ctx.hidden, mlp_norm, mlp_norm_bias);
}

void opt_head(StageContext& ctx, std::span<const Weight> weights, std::span<const int> tokens, const Rows& out) {
  const ModelConfig& c = ctx.config;
  const std::span<const float* const> all_vectors = ctx.backend.vectors(weights);
  std::size_t const after_lm_head = c.tied_head ? 0 : 1;
  const Rows rows = projected(c) ? ctx.backend.rows(Activation::branch, out.tokens, ctx.hidden.features) : out;
  ctx.backend.gather_rows(rows, ctx.hidden, tokens);
  if (c.final_norm) {
    VectorCursor vectors(all_vectors, after_lm_head + (projected(c) ? 1 : 0));
    const float* const weight = vectors.take(c.norm_affine);
    ctx.backend.layer_norm(rows, rows, weight, vectors.take(c.norm_affine));
  }
  if (projected(c)) linear(ctx, {{out, weights[after_lm_head]}}, rows);
}

int opt_head_matrix(const ModelConfig& config, const TensorTable& table) {
  return find_tensor(table, config.tied_head ? "model.decoder.embed_tokens.weight" : "lm_head.weight");
}

Widths opt_widths(const ModelConfig& config) {
  return {config.embed_dim, config.ffn};
}

}  // namespace

/// OPT, 125m to 175b: learned positions, LayerNorm, ReLU, biases; 350m's projections and late norms.
const Family& opt_family() {
  static constexpr Family family{.table = opt_table,
                                 .embedding = opt_embedding,
                                 .block = opt_block,
                                 .head = opt_head,
                                 .head_matrix = opt_head_matrix,
                                 .widths = opt_widths,
                                 .rotary = false};
  return family;
}

}  // namespace distzo2
