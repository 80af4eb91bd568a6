// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/gemm.hpp"

#include <cstddef>

namespace distzo2 {

/// Floats that a packed b of this shape takes.
std::size_t packed_floats(const GemmShape& shape);

/// Lays b (n, k), row-major floats or bf16 words, out as `Gemm::run` takes it (GemmShape says how). Done once a panel,
/// where the library would do it once a call.
void pack_weights(const GemmShape& shape, float* packed, const void* b);

}  // namespace distzo2
