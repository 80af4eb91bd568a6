// SPDX-License-Identifier: BSD-3-Clause
// How often a step waits for the device, and what it allocates there: of a GPU counted at the CUDA runtime's door, of
// the host in its place where the device's code asks for it.
#include "tests/support/device_run.hpp"
#include "tests/support/host_waits.hpp"

#include <gtest/gtest.h>

namespace distzo2 {
namespace {

void expect_one_wait_a_step(const Tiers& tiers, Storage storage, bool tied) {
  SCOPED_TRACE(tiers.name);
  const ModelConfig config = small_model(FamilyKind::opt, tied);
  const UpdateRule rule{3, DirectionKind::gaussian, storage, Rounding::stochastic, 1};
  Engine engine(config, rule, Compute::fp16, place(tensor_table(config), storage, tiers, chunk_target_bytes), nullptr,
                UnitPipeline::Options{}, test_device(shape_of_step));
  import_random(engine.store());
  const StepRule step{Difference::central, 1, 1e-3};
  for (std::uint32_t t = 0; t < 6; ++t) {
    const PackedBatch batch = batch_of_step(0);
    const Perturbation p{rule.seed, t, rule.kind, step_evaluations(step.difference, 1, step.epsilon)};
    std::vector<double> losses(2 * batch.terms.size());
    const std::vector<double> counts(batch.terms.size(), 1.0);
    const HostCalls before = host_calls();
    engine.forward(batch, p, losses);
    for (double& l : losses) l = -l;
    engine.store().append(make_step_record(step, t, 1e-3, 0.0F, losses, counts, 1e30).record);
    const HostCalls after = host_calls();
    if (t < 2) continue;  // the first steps load kernels
    EXPECT_EQ(after.waits - before.waits, 1) << "step " << t;
    EXPECT_EQ(after.allocations, before.allocations) << "step " << t;
  }
}

// Where embedding rows are looked up in host memory, that waits for the rows' write-back besides.
TEST(HostWaits, are_one_a_step_for_the_losses) {
  for (const Storage storage : {Storage::fp32, Storage::fp16}) {
    expect_one_wait_a_step({"resident", Tier::resident, true, false, 2, 1}, storage, true);
    expect_one_wait_a_step({"a block resident, the others in host memory", Tier::host, true, false, 3, 1, 1, false},
                           storage, false);
    expect_one_wait_a_step({"host memory in groups", Tier::host, true, true, 2, 1, 0, false}, storage, true);
  }
}

}  // namespace
}  // namespace distzo2
