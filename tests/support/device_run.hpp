// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/support/memory_storage.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/test_device.hpp"

#include <cstdint>
#include <memory>

namespace distzo2 {

inline std::unique_ptr<Engine> engine_on_host(const ModelConfig& config, const UpdateRule& rule, Compute compute) {
  auto engine = std::make_unique<Engine>(config, rule, compute, resident_placement(tensor_table(config), rule.storage),
                                         nullptr, UnitPipeline::Options{});
  import_random(engine->store());
  return engine;
}

/// A small model's steps on the device, with chunks of full size.
inline StepsResult run_on_device(const ModelConfig& config, const UpdateRule& rule, Compute compute, const Tiers& tiers,
                                 std::uint32_t steps = 10) {
  const Placement placement = place(tensor_table(config), rule.storage, tiers, chunk_target_bytes);
  MemoryStorage disk(placement.chunks);
  Engine engine(config, rule, compute, placement, &disk, UnitPipeline::Options{}, test_device(shape_of_step));
  import_random(engine.store());
  return run_steps(engine, rule, steps);
}

}  // namespace distzo2
