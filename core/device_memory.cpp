// SPDX-License-Identifier: BSD-3-Clause
#include "core/device_memory.hpp"

#include "core/models/family.hpp"
#include "core/round_up.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

std::uint64_t u64(std::int64_t n) {
  return static_cast<std::uint64_t>(n);
}

/// Small tables that do not grow with the batch: records and directions.
constexpr std::uint64_t least_table_bytes = std::uint64_t{64} << 10;

}  // namespace

std::int64_t largest_matrix(const ModelConfig& m) {
  return std::max(m.hidden * m.heads * m.head_dim, m.hidden * m.ffn);
}

DeviceSizes device_sizes(const ModelConfig& m, Compute compute, const BatchShape& batch) {
  const std::uint64_t f = sizeof(float), c = bytes_of(compute), e = u64(batch.evaluations);
  const std::uint64_t rows = u64(round_up(batch.tokens, device_row_tile));
  const std::uint64_t head_rows = u64(round_up(batch.terms, device_row_tile));
  const std::uint64_t h = u64(m.hidden), q = u64(m.heads * m.head_dim), kv = u64(m.kv_heads * m.head_dim);
  const Family& family = family_of(m.family);
  const Widths widths = family.widths(m);
  const std::uint64_t ffn = u64(m.ffn), embed = u64(widths.embedding);
  DeviceSizes s;
  s.weights = e * u64(largest_matrix(m)) * c;
  s.hidden = e * rows * h * f;
  s.branch = e * std::max(rows, head_rows) * h * f;
  s.wide = e * rows * u64(wide_features(m)) * f;
  if (compute != Compute::fp32) s.rounded = e * std::max(rows, head_rows) * std::max({h, q, ffn, embed}) * c;
  s.gathered = rows * (embed + (family.rotary ? 0 : h)) * f;
  s.vectors = e * (6 * h + q + 2 * kv + u64(widths.mlp)) * f;  // norms and biases, at most
  s.head = e * head_rows * embed * f;
  s.logits = device_logits_bytes;
  s.softmax = e * head_rows * 4 * sizeof(double);
  if (family.rotary) s.rope = u64(round_up(batch.tokens, 256) * m.head_dim) * f;  // RopeTable grows by 256 positions
  // A token: id, position, row of the position table, place among the head's rows, a span, tiles of all its heads.
  // A term: row, target, its place by row, and the row's first.
  s.tables = least_table_bytes + rows * (4 * 4 + 16 + 8 * (1 + u64(m.heads / m.kv_heads))) + head_rows * 4 * 4;
  s.results = e * head_rows * sizeof(double);
  return s;
}

std::vector<MemoryTerm> device_terms(const ModelConfig& m, Compute compute, const BatchShape& batch) {
  const DeviceSizes s = device_sizes(m, compute, batch);
  std::vector<MemoryTerm> terms;
  const auto add = [&](const char* name, std::uint64_t bytes, MemoryPlace place = MemoryPlace::device) {
    if (bytes > 0) terms.push_back({name, bytes, place});
  };
  add("device context and kernels", device_context_bytes);
  add("GEMM workspace", device_gemm_workspace_bytes);
  add("perturbed weights of one matrix", s.weights);
  add("residual stream", s.hidden);
  add("norm outputs and results", s.branch);
  add("q k v, MLP hidden features", s.wide);
  add("rounded inputs of products", s.rounded);
  add("gathered embedding rows", s.gathered);
  add("perturbed norms and biases", s.vectors);
  add("rows of the head", s.head);
  add("logits of a chunk", s.logits);
  add("softmax sums and log-probabilities", s.softmax);
  add("rotary embedding", s.rope);
  add("tables of a pass", s.tables);
  add("tables and results of a pass", s.tables + s.results, MemoryPlace::host);
  return terms;
}

}  // namespace distzo2
