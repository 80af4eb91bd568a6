// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/models/family.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace distzo2 {

/// Throws Error (internal) for a batch that is broken or names tokens beyond the vocabulary.
void check_batch(const PackedBatch& batch, std::int64_t vocab);

/// Hands out a block's one-dimensional tensors (Backend::vectors) one after another, null where a tensor does not
/// exist.
class VectorCursor {
public:
  VectorCursor(std::span<const float* const> vectors, std::size_t first) : vectors_(vectors), next_(first) {}
  const float* take(bool exists) { return exists ? vectors_[next_++] : nullptr; }

private:
  std::span<const float* const> vectors_;
  std::size_t next_;
};

/// Rows of all tokens.
Rows branch_rows(StageContext& ctx);
Rows wide_rows(StageContext& ctx, std::int64_t features);

/// The products of x; in group mode one after another, each matrix opened for its own.
void linear(StageContext& ctx, std::initializer_list<Product> products, const Rows& x);

/// q, k and v stand side by side in `qkv`; the result replaces q, whose rows are returned.
Rows attend(StageContext& ctx, const Rows& qkv);

}  // namespace distzo2
