// SPDX-License-Identifier: BSD-3-Clause
// An engine whose parameters stream to a device: the tiers of that device change no bit of losses and theta.
#include "tests/support/device_run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

namespace distzo2 {
namespace {

const Tiers places[] = {{"host", Tier::host, true, false, 2, 1},
                        {"host, three buffers, one block resident", Tier::host, true, false, 3, 1, 1},
                        {"host in groups, written back every 4", Tier::host, true, true, 2, 4},
                        {"disk", Tier::disk, true, false, 2, 1},
                        {"disk in groups, three buffers, written back every 4", Tier::disk, true, true, 3, 4}};

void expect_equal_bits_of_tiers(const ModelConfig& config, const UpdateRule& rule, Compute compute,
                                std::uint32_t steps = 6, std::span<const Tiers> tried = places) {
  const StepsResult resident =
      run_on_device(config, rule, compute, {"resident", Tier::resident, true, false, 2, 1}, steps);
  for (const double loss : resident.losses) ASSERT_TRUE(std::isfinite(loss));
  for (const Tiers& tiers : tried) {
    const StepsResult result = run_on_device(config, rule, compute, tiers, steps);
    EXPECT_EQ(result.losses, resident.losses) << tiers.name;
    EXPECT_EQ(result.theta, resident.theta) << tiers.name;
  }
}

TEST(DeviceTiers, change_no_bit_in_fp32) {
  expect_equal_bits_of_tiers(small_model(FamilyKind::llama, true),
                             {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1}, Compute::fp32);
}

TEST(DeviceTiers, change_no_bit_in_16_bits) {
  expect_equal_bits_of_tiers(small_model(FamilyKind::opt, false),
                             {3, DirectionKind::gaussian, Storage::fp16, Rounding::stochastic, 1}, Compute::fp16);
  expect_equal_bits_of_tiers(small_model(FamilyKind::qwen3, true),
                             {3, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 4}, Compute::bf16);
}

TEST(DeviceTiers, change_no_bit_where_tables_are_cut_into_several_units) {
  ModelConfig config = small_model(FamilyKind::llama, true);
  config.vocab = 70000;  // three chunks
  const UpdateRule rule{3, DirectionKind::rademacher, Storage::fp32, Rounding::stochastic, 1};
  ASSERT_GT(place(tensor_table(config), rule.storage, places[2], chunk_target_bytes).unit_begin[1], 1);
  expect_equal_bits_of_tiers(config, rule, Compute::fp32, 2, std::span(places).subspan(2, 1));
  expect_equal_bits_of_tiers(config, rule, Compute::fp32, 1, std::span(places).last(1));
}

TEST(DeviceTiers, have_the_theta_of_the_host_after_the_same_records) {
  const ModelConfig config = small_model(FamilyKind::opt, false);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1};
  const StepsResult device = run_on_device(config, rule, Compute::fp32, places[0]);
  const std::unique_ptr<Engine> host = engine_on_host(config, rule, Compute::fp32);
  for (const StepRecord& record : device.records) host->store().append(record);
  EXPECT_EQ(host->store().digest(), device.theta);
  host->store().apply_pending();
  EXPECT_EQ(host->store().digest(), device.theta);
}

TEST(DeviceTiers, follow_the_trajectory_of_the_host) {
  const ModelConfig config = small_model(FamilyKind::llama, false);
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const StepsResult device = run_on_device(config, rule, Compute::fp32, places[0]);
  const std::unique_ptr<Engine> host = engine_on_host(config, rule, Compute::fp32);
  const StepsResult own = run_steps(*host, rule);  // its own g
  ASSERT_EQ(own.losses.size(), device.losses.size());
  for (std::size_t i = 0; i < own.losses.size(); ++i) EXPECT_NEAR(device.losses[i], own.losses[i], 1e-3) << i;
}

}  // namespace
}  // namespace distzo2
