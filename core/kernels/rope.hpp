// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/model_config.hpp"
#include "core/tool_hooks.hpp"
#include "core/workspace.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// Frequencies of the pairs (i, i + head_dim / 2), i < head_dim / 2, Llama-3's scaling applied. Each operation is
/// rounded to fp32 as in transformers: at position p a last-bit difference here is one of p * 6e-8 in the angle.
std::vector<float> rope_frequencies(const RopeConfig& rope, int head_dim);

/// cos and sin of float(position * frequency), grown outside the step as longer sequences come.
class RopeTable {
public:
  /// Makes positions [0, count) available. Keeps what it has if that is enough.
  void reserve(const RopeConfig& rope, int head_dim, int count);
  int positions() const { return positions_; }
  std::size_t bytes() const { return values_.size() * sizeof(float); }
  /// (2, head_dim / 2): the cosines of a position, then its sines.
  const float* at(int position) const {
    return values_.data() + static_cast<std::size_t>(position) * frequencies_.size() * 2;
  }

private:
  std::vector<float> frequencies_;
  ScratchVector<float> values_;
  int positions_ = 0;
};

/// Rotates every head of x (evaluations, tokens, heads * head_dim) in place; positions (tokens) < table.positions().
void rotate(const HostExec& exec, const Rows& x, int head_dim, std::span<const std::int32_t> positions,
            const RopeTable& table);

}  // namespace distzo2
