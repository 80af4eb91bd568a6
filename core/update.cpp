// SPDX-License-Identifier: BSD-3-Clause
#include "core/update.hpp"

#include "core/simd/kernels.hpp"

namespace distzo2 {
namespace {

void round_to_storage(const SimdKernels& kernels, float* theta, std::uint64_t first, std::size_t n,
                      const UpdateRule& rule, std::uint32_t t) {
  std::uint16_t stored[chunk_elements];
  if (rule.rounding == Rounding::stochastic) {
    kernels.store_stochastic(stored, theta, rule.storage, rule.seed, t, first, n);
  } else {
    kernels.store_nearest(stored, theta, rule.storage, n);
  }
  kernels.load_16(theta, stored, rule.storage, n);
}

void apply_to_chunk(const SimdKernels& kernels, float* theta, std::uint64_t first, std::size_t n, bool matrix,
                    const UpdateRule& rule, std::span<const StepRecord> records, float* z) {
  const bool gaussian = rule.kind == DirectionKind::gaussian;
  const bool rounded = matrix && rule.storage != Storage::fp32;
  for (const StepRecord& record : records) {
    const float d = matrix ? decay_factor(record) : 1.0F;
    if (d != 1.0F) {
      kernels.scale(theta, d, n);
    }
    for (std::uint32_t k = 1; k <= record.c.size(); ++k) {
      const float c = record.c[k - 1];
      if (c == 0.0F) continue;
      if (gaussian) {
        kernels.fill_gaussian(z, rule.seed, record.t, k, first, n);
        kernels.add_scaled(theta, z, c, n);
      } else {
        kernels.add_rademacher(theta, c, rule.seed, record.t, k, first, n);
      }
    }
    if (rounded && (record.t + 1) % rule.round_every == 0) {
      round_to_storage(kernels, theta, first, n, rule, record.t);
    }
  }
}

}  // namespace

void apply_records(float* theta, std::uint64_t first, std::size_t n, bool matrix, const UpdateRule& rule,
                   std::span<const StepRecord> records, float* scratch) {
  const SimdKernels& kernels = simd_kernels();
  for (std::size_t done = 0; done < n;) {
    const auto m = static_cast<std::size_t>(up_to_chunk_end(first + done, static_cast<std::int64_t>(n - done)));
    apply_to_chunk(kernels, theta + done, first + done, m, matrix, rule, records, scratch);
    done += m;
  }
}

}  // namespace distzo2
