// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace distzo2 {

/// Activations of all this rank's evaluations: element (e, token, feature), features contiguous.
struct Rows {
  float* data = nullptr;
  int evaluations = 0;
  int tokens = 0;
  int features = 0;
  std::int64_t row_stride = 0;         // floats between tokens
  std::int64_t evaluation_stride = 0;  // floats between evaluations
  KOKKOS_INLINE_FUNCTION float* row(int e, int token) const {
    return data + e * evaluation_stride + token * row_stride;
  }
  /// Columns [begin, begin + count) of the same rows.
  Rows columns(int begin, int count) const {
    return Rows{data + begin, evaluations, tokens, count, row_stride, evaluation_stride};
  }
};

/// Owns activation memory; grows only outside the step loop.
class ActivationBuffer {
public:
  ActivationBuffer() = default;
  explicit ActivationBuffer(const char* label) : label_(label) {}
  /// Rows of this shape; reallocates only where the buffer is too small. Token counts are padded to `row_tile`.
  Rows shape(int evaluations, int tokens, int features);
  std::size_t bytes() const { return floats_ * sizeof(float); }

private:
  const char* label_ = "distzo2::activations";
  std::shared_ptr<std::byte> memory_;
  std::size_t floats_ = 0;
};

/// Rows of activations a GEMM call, chosen by measurement (docs/performance.md); buffers are padded up to a multiple of
/// it, so that tiles never leave them.
constexpr int row_tile = 16;

}  // namespace distzo2
