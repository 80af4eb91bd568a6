// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/stage.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {
namespace {

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

Rows branch_rows(StageContext& ctx) {
  return ctx.backend.rows(Activation::branch, ctx.hidden.tokens, ctx.hidden.features);
}

Rows wide_rows(StageContext& ctx, std::int64_t features) {
  return ctx.backend.rows(Activation::wide, ctx.hidden.tokens, features);
}

void linear(StageContext& ctx, std::initializer_list<Product> products, const Rows& x) {
  if (!ctx.store.placement().groups) {
    ctx.backend.linear(products, x);
    for (const Product& product : products) ctx.store.absorbed(product.w.tensor);
    return;
  }
  for (Product product : products) {
    product.w = ctx.store.open_matrix(product.w.tensor);
    ctx.store.sample_rounding_of(product.w);
    ctx.backend.linear({product}, x);
    ctx.store.absorbed(product.w.tensor);
    ctx.store.close_matrix(product.w.tensor);
  }
}

Rows attend(StageContext& ctx, const Rows& qkv) {
  const ModelConfig& c = ctx.config;
  const int q_features = static_cast<int>(c.heads * c.head_dim);
  const int kv_features = static_cast<int>(c.kv_heads * c.head_dim);
  const Rows q = qkv.columns(0, q_features);
  ctx.backend.attention(q, q, qkv.columns(q_features, kv_features), qkv.columns(q_features + kv_features, kv_features));
  return q;
}

}  // namespace distzo2
