// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/model_config.hpp"
#include "core/packed_batch.hpp"
#include "core/precision.hpp"
#include "core/workspace.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace distzo2 {

/// Grouped-query heads: heads h of [g * heads / kv_heads, (g + 1) * heads / kv_heads) read key-value head g.
struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
};
AttentionShape attention_shape(const ModelConfig& config);

/// A piece of work: so many rows of a span, or what is left of it, a row being one query of one of the heads of a
/// group.
struct AttentionTile {
  int span = 0;
  int first_row = 0;  // query * group + head within the group
};
constexpr int attention_rows = 64;

/// All tiles of `rows` rows of a batch, those with the most keys first. Reuses the memory of `tiles`.
void attention_tiles(std::vector<AttentionTile>& tiles, std::span<const AttentionSpan> spans,
                     const AttentionShape& shape, int rows = attention_rows);

/// Floats that one thread needs; `attention` takes this many for each of exec.concurrency() threads.
std::size_t attention_scratch(int head_dim);

/// out = softmax(q k^T / sqrt(head_dim)) v over the keys that each query may see; online softmax over key tiles.
/// q, out (evaluations, tokens, heads * head_dim); k, v (evaluations, tokens, kv_heads * head_dim). out may be q.
/// fp32; with 16-bit compute the inputs of both products are rounded to it. A row's bits depend on its own query and
/// keys only.
void attention(const HostExec& exec, const Rows& out, const Rows& q, const Rows& k, const Rows& v,
               const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<const AttentionTile> tiles,
               Compute compute, float* scratch);

}  // namespace distzo2
