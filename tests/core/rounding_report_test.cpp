// SPDX-License-Identifier: BSD-3-Clause
#include "core/rounding_report.hpp"

#include "core/parameter_store.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace distzo2 {
namespace {

constexpr int rows = 64, cols = 32;

/// All weights 1: bf16's spacing there is 2^-7 above and 2^-8 below.
RoundingReport after_steps(Storage storage, Rounding rounding, std::uint32_t round_every, int steps, float c) {
  const auto arena = make_kokkos_arena();
  ParameterStore store(make_tensor_table({{{"w", rows, cols, true}}}),
                       {5, DirectionKind::rademacher, storage, rounding, round_every}, *arena);
  store.import_values(0, 0, std::vector<float>(rows * cols, 1.0F));
  for (std::uint32_t t = 0; t < static_cast<std::uint32_t>(steps); ++t) {
    store.append({t, 1e-3, 0.0F, {c}, {1.0}, {1.0}, {1.0, 1.0}});
    store.apply_pending();
  }
  return store.rounding();
}

TEST(RoundingReport, is_silent_in_fp32) {
  const RoundingReport r = after_steps(Storage::fp32, Rounding::stochastic, 1, 3, 1e-3F);
  EXPECT_EQ(r.realised_share(), 1.0);
  EXPECT_EQ(r.accumulated_noise(), 0.0);
}

TEST(RoundingReport, shows_that_rounding_to_nearest_loses_small_updates) {
  // A change of 1e-3 is under half of either spacing: nothing arrives, and the noise is the change itself, 1e-3 a step.
  const RoundingReport r = after_steps(Storage::bf16, Rounding::nearest, 1, 4, 1e-3F);
  EXPECT_EQ(r.realised_share(), 0.0);
  EXPECT_NEAR(r.accumulated_noise(), 2e-3, 1e-6);
}

TEST(RoundingReport, finds_stochastic_rounding_unbiased_with_the_noise_of_its_spacing) {
  // From 1, a change x lands a spacing s away with probability x / s: variance x (s - x), s = 2^-7 up and 2^-8 down.
  const double x = 1e-3;
  const double variance = 0.5 * (x * (0x1p-7 - x) + x * (0x1p-8 - x));
  const RoundingReport r = after_steps(Storage::bf16, Rounding::stochastic, 1, 1, 1e-3F);
  EXPECT_NEAR(r.realised_share(), 1.0, 0.3);  // 1,024 samples: standard deviation sqrt(variance) / x / 32 = 0.07
  EXPECT_NEAR(r.accumulated_noise(), std::sqrt(variance), 0.1 * std::sqrt(variance));
}

TEST(RoundingReport, counts_a_rounding_point_once_for_many_records) {
  const RoundingReport r = after_steps(Storage::bf16, Rounding::nearest, 4, 8, 1e-4F);
  EXPECT_EQ(r.points, 2U);
}

}  // namespace
}  // namespace distzo2
