// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace distzo2 {

/// Queries [query_begin, query_end) see all keys of [prefix_begin, prefix_end) and, causally, their own range.
/// An ordinary sequence has an empty prefix; candidates that share a prompt name the prompt's tokens as their prefix.
struct AttentionSpan {
  int query_begin = 0, query_end = 0;
  int prefix_begin = 0, prefix_end = 0;
};

/// One wanted number: log p(target | everything that row `token` sees).
struct LossTerm {
  int token = 0;   // row of the packed batch whose logits are read (the token before the target)
  int target = 0;  // vocabulary entry
};

/// Sequences packed without padding.
struct PackedBatch {
  std::vector<std::int32_t> ids;        // (tokens)
  std::vector<std::int32_t> positions;  // (tokens), from 0 in each sequence; a candidate goes on after its prefix
  std::vector<AttentionSpan> spans;     // cover every token once, in order
  std::vector<LossTerm> terms;
  int tokens() const { return static_cast<int>(ids.size()); }
};

}  // namespace distzo2
