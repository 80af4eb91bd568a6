// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/kernels/attention.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace distzo2 {

/// Queries, keys and values, uniform in [-2, 2), and the host's attention over them.
struct AttentionCase {
  AttentionShape shape;
  int evaluations, tokens;
  std::vector<float> q, k, v;
  HostExec exec;

  AttentionCase(AttentionShape s, int e, int n) : shape(s), evaluations(e), tokens(n) {
    std::uint32_t state = 12345;
    const auto fill = [&](std::vector<float>& x, int heads) {
      x.resize(static_cast<std::size_t>(e) * static_cast<std::size_t>(n * heads * s.head_dim));
      for (float& value : x) {
        state = state * 1664525U + 1013904223U;
        value = static_cast<float>(state >> 8U) * 0x1p-22F - 2.0F;
      }
    };
    fill(q, s.heads);
    fill(k, s.kv_heads);
    fill(v, s.kv_heads);
  }

  /// One head of one feature: scores of token 1 are ln 3 * (0, 1), so its weights are 1/4 and 3/4, and the outputs of
  /// the sequence 8 and 14.
  static AttentionCase by_hand() {
    AttentionCase c({1, 1, 1}, 1, 2);
    c.q = {5.0F, std::log(3.0F)};
    c.k = {0.0F, 1.0F};
    c.v = {8.0F, 16.0F};
    return c;
  }

  Rows rows(std::vector<float>& x, int heads) const {
    const int features = heads * shape.head_dim;
    return {x.data(), evaluations, tokens, features, features, static_cast<std::int64_t>(tokens) * features};
  }
  std::vector<float> on_host(const std::vector<AttentionSpan>& spans, Compute compute = Compute::fp32) {
    std::vector<AttentionTile> tiles;
    attention_tiles(tiles, spans, shape);
    std::vector<float> scratch(attention_scratch(shape.head_dim) * static_cast<std::size_t>(exec.concurrency()));
    std::vector<float> out(q.size());
    attention(exec, rows(out, shape.heads), rows(q, shape.heads), rows(k, shape.kv_heads), rows(v, shape.kv_heads),
              shape, spans, tiles, compute, scratch.data());
    return out;
  }
};

}  // namespace distzo2
