// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/trajectory_record.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace distzo2 {

/// Elements of theta that are updated and perturbed at a time: theta, z and the results stay in the first-level cache
/// over all records.
constexpr std::int64_t chunk_elements = 1024;

/// Of `n` elements from global index `first`, those up to the next multiple of chunk_elements.
constexpr std::int64_t up_to_chunk_end(std::uint64_t first, std::int64_t n) {
  return std::min(n, chunk_elements - static_cast<std::int64_t>(first % chunk_elements));
}

/// The one update function (design section 1), shared by the step, replay and export: applies `records` in order to
/// theta[0..n), the fp32 values of global indices first .. first + n:
///   theta <- d * theta where the tensor is decayed and d is not 1; then for k = 1..q where c[k] is not 0:
///   theta <- fma(c[k], z(t,k), theta); and, for a matrix in 16-bit storage, theta <- round_S(theta) where (t+1) mod R
///   = 0.
/// `scratch` holds chunk_elements floats, or n where those are fewer. In place; allocates nothing.
void apply_records(float* theta, std::uint64_t first, std::size_t n, bool matrix, const UpdateRule& rule,
                   std::span<const StepRecord> records, float* scratch);

}  // namespace distzo2
