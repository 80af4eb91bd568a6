// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/trajectory_record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace distzo2 {

/// The one update function (design section 1), shared by the step, replay and export: applies `records` in order to
/// theta[0..n), the fp32 values of global indices first .. first + n:
///   theta <- d * theta where the tensor is decayed and d is not 1; then for k = 1..q where c[k] is not 0:
///   theta <- fma(c[k], z(t,k), theta); and, for a matrix in 16-bit storage, theta <- round_S(theta) where (t+1) mod R
///   = 0.
/// `scratch` holds n floats. In place; allocates nothing.
void apply_records(float* theta, std::uint64_t first, std::size_t n, bool matrix, const UpdateRule& rule,
                   std::span<const StepRecord> records, float* scratch);

}  // namespace distzo2
