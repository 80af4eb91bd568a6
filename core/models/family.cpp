// SPDX-License-Identifier: BSD-3-Clause
#include "core/models/family.hpp"

#include "core/error.hpp"
#include "core/models/families.hpp"

#include <algorithm>

namespace distzo2 {

const Family& family_of(FamilyKind kind) {
  switch (kind) {
    case FamilyKind::opt:
      return opt_family();
    case FamilyKind::llama:
      return llama_family();
    case FamilyKind::qwen3:
      return qwen3_family();
  }
  throw Error(ExitCode::internal, "a model family without stages");
}

std::int64_t wide_features(const ModelConfig& config) {
  const Widths widths = family_of(config.family).widths(config);
  const std::int64_t qkv = (config.heads + 2 * config.kv_heads) * config.head_dim;
  const std::int64_t projected = widths.embedding != config.hidden ? widths.embedding : 0;
  return std::max({qkv, widths.mlp, projected});
}

}  // namespace distzo2
