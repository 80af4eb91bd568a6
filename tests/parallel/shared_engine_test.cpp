// SPDX-License-Identifier: BSD-3-Clause
#include "core/kokkos_scope.hpp"
#include "parallel/shared_window.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/test_world.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace distzo2 {
namespace {

// One copy of a model for all ranks of the node, in a window of MPI: losses and theta keep the bits of a rank alone.

void expect_bits_of_one_rank(FamilyKind family, bool tied, bool groups, const UpdateRule& rule, Compute compute) {
  const ModelConfig config = small_model(family, tied);
  const Placement placement = place(tensor_table(config), rule.storage,
                                    {"resident", Tier::resident, true, groups, 2, 1, 3, false}, chunk_target_bytes);
  Engine alone(config, rule, compute, placement, nullptr);
  import_random(alone.store());
  const StepsResult expected = run_steps(alone, rule);

  SharedWindow window(test_world(), node_memory_bytes(placement, test_world().size()), test_world().rank());
  Engine engine(config, rule, compute, placement, nullptr, {}, {}, &window);
  import_random(engine.store());
  engine.store().imported();
  const StepsResult shared = run_steps(engine, rule);
  EXPECT_EQ(shared.losses, expected.losses);
  EXPECT_EQ(shared.theta, expected.theta);

  // One rank reads the whole model while the others go on as far as they may: to the next update.
  if (test_world().is_first()) {
    EXPECT_EQ(engine.store().digest(), expected.theta);
  }
  engine.store().update_shared();
  if (test_world().is_first()) {
    EXPECT_EQ(engine.store().digest(), expected.theta);
  }
  // Passes of one rank alone, with nothing left to update.
  if (test_world().rank() == test_world().size() - 1) {
    const PackedBatch batch = batch_of_step(50);
    std::vector<double> there(batch.terms.size()), here(batch.terms.size());
    engine.forward(batch, clean_perturbation(), there);
    alone.forward(batch, clean_perturbation(), here);
    EXPECT_EQ(there, here);
  }
  engine.store().apply_pending();
  EXPECT_EQ(engine.store().digest(), expected.theta);
}

TEST(SharedEngine, gives_the_bits_of_one_rank) {
  const KokkosScope kokkos(1);
  expect_bits_of_one_rank(FamilyKind::llama, true, false,
                          {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1}, Compute::fp32);
  expect_bits_of_one_rank(FamilyKind::opt, false, false,
                          {3, DirectionKind::rademacher, Storage::bf16, Rounding::stochastic, 1}, Compute::bf16);
  expect_bits_of_one_rank(FamilyKind::opt, true, true,
                          {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 4}, Compute::fp32);
  expect_bits_of_one_rank(FamilyKind::llama, false, true,
                          {3, DirectionKind::gaussian, Storage::fp16, Rounding::nearest, 2}, Compute::fp32);
}

}  // namespace
}  // namespace distzo2
