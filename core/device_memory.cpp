// SPDX-License-Identifier: BSD-3-Clause
#include "core/device_memory.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

std::uint64_t u64(std::int64_t n) {
  return static_cast<std::uint64_t>(n);
}

}  // namespace

std::vector<MemoryTerm> device_terms(const ModelConfig& m, Compute compute, const BatchShape& batch) {
  const std::uint64_t f = sizeof(float), c = compute == Compute::fp32 ? 4 : 2;
  const std::uint64_t e = u64(batch.evaluations);
  const auto padded = [](int rows) { return u64((rows + device_row_tile - 1) / device_row_tile * device_row_tile); };
  const std::uint64_t rows = padded(batch.tokens), head_rows = padded(batch.terms);
  const std::uint64_t h = u64(m.hidden), q = u64(m.heads * m.head_dim), kv = u64(m.kv_heads * m.head_dim);
  const std::uint64_t ffn = u64(m.ffn), embed = m.family == FamilyKind::opt ? u64(m.embed_dim) : h;
  const bool gated = m.family != FamilyKind::opt;
  const std::uint64_t matrix = std::max(h * std::max(q, kv), h * ffn);
  const std::uint64_t wide = std::max(q + 2 * kv, gated ? 2 * ffn : ffn);
  const std::uint64_t columns = std::max({h, q, ffn});
  const std::uint64_t vectors = 6 * h + q + 2 * kv + (gated ? 2 : 1) * ffn;  // norms and biases, at most
  const auto on_device = [](const char* name, std::uint64_t bytes) {
    return MemoryTerm{name, bytes, MemoryPlace::device};
  };
  std::vector<MemoryTerm> terms{
      on_device("device context and kernels", device_context_bytes),
      on_device("GEMM workspace", device_gemm_workspace_bytes),
      on_device("perturbed weights of one matrix", e * matrix * c),
      on_device("residual stream", e * rows * h * f),
      on_device("norm outputs and results", e * rows * h * f),
      on_device("q k v, MLP hidden features", e * rows * wide * f),
  };
  if (compute != Compute::fp32) terms.push_back(on_device("rounded inputs of products", e * rows * columns * c));
  terms.push_back(on_device("gathered embedding rows", rows * (embed + (gated ? 0 : h)) * f));
  terms.push_back(on_device("perturbed norms and biases", e * vectors * f));
  terms.push_back(on_device("rows of the head", e * head_rows * embed * f));
  terms.push_back(on_device("logits of a chunk", device_logits_bytes));
  terms.push_back(on_device("running softmax sums", e * head_rows * 2 * sizeof(double)));
  return terms;
}

}  // namespace distzo2
