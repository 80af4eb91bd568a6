// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/activations.hpp"

#include "core/error.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {
namespace {

AttentionShape attention_shape(const ModelConfig& config) {
  return {static_cast<int>(config.heads), static_cast<int>(config.kv_heads), static_cast<int>(config.head_dim)};
}

void require(bool sound, const char* what) {
  if (!sound) throw Error(ExitCode::internal, std::string("a packed batch is broken: ") + what);
}

}  // namespace

void check_batch(const PackedBatch& batch, std::int64_t vocab) {
  const auto in_vocabulary = [=](std::int64_t id) { return id >= 0 && id < vocab; };
  require(batch.tokens() > 0, "it has no tokens");
  require(batch.positions.size() == batch.ids.size(), "ids and positions differ in number");
  require(std::ranges::all_of(batch.ids, in_vocabulary), "a token id is not in the vocabulary");
  require(std::ranges::min(batch.positions) >= 0, "a position is negative");
  int next = 0;
  for (const AttentionSpan& s : batch.spans) {
    require(s.query_begin == next && s.query_end > s.query_begin, "its spans do not cover the tokens in order");
    require(s.prefix_begin >= 0 && s.prefix_end >= s.prefix_begin && s.prefix_end <= batch.tokens(),
            "a prefix is out of range");
    next = s.query_end;
  }
  require(next == batch.tokens(), "its spans do not cover the tokens in order");
  for (const LossTerm& t : batch.terms) {
    require(t.token >= 0 && t.token < batch.tokens() && in_vocabulary(t.target), "a loss term is out of range");
  }
}

std::size_t Activations::bytes() const {
  return branch.bytes() + wide.bytes() + rope.bytes() + (vectors.size() + attention_scratch.size()) * sizeof(float);
}

int wide_features(const ModelConfig& config) {
  std::int64_t const qkv = (config.heads + 2 * config.kv_heads) * config.head_dim;
  std::int64_t const mlp = config.family == FamilyKind::opt ? std::max(config.ffn, config.embed_dim) : 2 * config.ffn;
  return static_cast<int>(std::max(qkv, mlp));
}

std::size_t stage_bytes(const ModelConfig& config, int evaluations, int tokens, int terms, int threads) {
  const auto padded = [](int n) { return static_cast<std::size_t>(round_up(n, row_tile)); };
  const auto hidden = static_cast<std::size_t>(config.hidden);
  std::size_t const rows =
      padded(tokens) * static_cast<std::size_t>(wide_features(config)) + padded(std::max(tokens, terms)) * hidden;
  std::int64_t vectors = 0;
  for (const Block& b : family_of(config.family).table(config).blocks)
    vectors = std::max(vectors, b.end - b.vectors_first);
  std::size_t const rope = config.family == FamilyKind::opt
                               ? 0
                               : static_cast<std::size_t>(tokens) * static_cast<std::size_t>(config.head_dim);
  std::size_t const attention =
      attention_scratch(static_cast<int>(config.head_dim)) * static_cast<std::size_t>(threads);
  return (static_cast<std::size_t>(evaluations) * (rows + static_cast<std::size_t>(vectors)) + rope + attention) *
         sizeof(float);
}

void prepare_batch(StageContext& ctx) {
  Activations& a = ctx.scratch;
  const ModelConfig& config = ctx.config;
  attention_tiles(a.tiles, ctx.batch.spans, attention_shape(config));
  std::size_t const threads = static_cast<std::size_t>(ctx.exec.concurrency());
  std::size_t const scratch = attention_scratch(static_cast<int>(config.head_dim)) * threads;
  if (a.attention_scratch.size() < scratch) a.attention_scratch.resize(scratch);
}

void load_vectors(StageContext& ctx, std::span<const Weight> weights) {
  Activations& a = ctx.scratch;
  std::size_t const evaluations = ctx.perturbation.evaluations.size();
  std::size_t floats = 0;
  for (const Weight& w : weights) floats += w.matrix ? 0 : evaluations * static_cast<std::size_t>(w.cols);
  if (a.vectors.size() < floats) a.vectors.resize(floats);
  a.vector_of.assign(weights.size(), nullptr);
  float* next = a.vectors.data();
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j].matrix) continue;
    perturbed_vector(next, weights[j], ctx.perturbation, ctx.panels);
    a.vector_of[j] = next;
    next += evaluations * static_cast<std::size_t>(weights[j].cols);
  }
}

Rows branch_rows(StageContext& ctx) {
  return ctx.scratch.branch.shape(ctx.hidden.evaluations, ctx.hidden.tokens, ctx.hidden.features);
}

Rows wide_rows(StageContext& ctx, std::int64_t features) {
  return ctx.scratch.wide.shape(ctx.hidden.evaluations, ctx.hidden.tokens, static_cast<int>(features));
}

void linear(StageContext& ctx, std::initializer_list<Product> products, const Rows& x) {
  if (!ctx.store.placement().groups) {
    linear(ctx.exec, products, x, ctx.perturbation, ctx.compute, ctx.panels);
    for (const Product& product : products) ctx.store.absorbed(product.w.tensor);
    return;
  }
  for (Product product : products) {
    product.w = ctx.store.open_matrix(product.w.tensor);
    ctx.store.sample_rounding_of(product.w);
    linear(ctx.exec, {product}, x, ctx.perturbation, ctx.compute, ctx.panels);
    ctx.store.absorbed(product.w.tensor);
    ctx.store.close_matrix(product.w.tensor);
  }
}

Rows attend(StageContext& ctx, const Rows& qkv) {
  const ScopedTime time(ctx.scratch.attention_s);
  const AttentionShape shape = attention_shape(ctx.config);
  const int q_features = shape.heads * shape.head_dim;
  const int kv_features = shape.kv_heads * shape.head_dim;
  const Rows q = qkv.columns(0, q_features);
  const Rows k = qkv.columns(q_features, kv_features);
  const Rows v = qkv.columns(q_features + kv_features, kv_features);
  attention(ctx.exec, q, q, k, v, shape, ctx.batch.spans, ctx.scratch.tiles, ctx.compute,
            ctx.scratch.attention_scratch.data());
  return q;
}

}  // namespace distzo2
