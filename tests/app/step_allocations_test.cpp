// SPDX-License-Identifier: BSD-3-Clause
// A step allocates nothing, wherever the parameters lie: neither by malloc and its relatives, on any thread, nor in the
// eyes of Kokkos. A step is the forward passes of its evaluations and the record that updates theta.
#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

#include <atomic>
#include <string>
#include <vector>

#include "app/loading.hpp"
#include "core/engine.hpp"
#include "core/kernels/gemm_kokkosblas.hpp"
#include "core/model_shapes.hpp"
#include "core/step.hpp"
#include "io/block_file.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

std::atomic<int> kokkos_allocations{0};

struct Way {
  std::string name;
  Storage storage;
  Compute compute;
  Tier tier;
  bool staging, groups;
  int buffers;
  std::uint32_t write_back_every;
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

Placement place(const TensorTable& table, const Way& way) {
  constexpr std::size_t small_chunk = std::size_t{1} << 16;  // so that a block has many
  Placement p = make_units(table, make_chunk_table(table, way.storage, small_chunk), way.groups);
  p.staging = way.staging;
  p.buffers = way.buffers;
  p.write_back_every = way.write_back_every;
  for (int u = 0; u < std::ssize(p.units); ++u)
    if (may_stream(p, table, p.chunks, u)) p.units[static_cast<std::size_t>(u)].tier = way.tier;
  size_buffers(p);
  return p;
}

PackedBatch some_tokens(std::int32_t vocab, std::int32_t from) {
  PackedBatch batch;
  for (const int length : {9, 20, 14}) {
    const int begin = batch.tokens();
    for (int i = 0; i < length; ++i) {
      batch.ids.push_back((from + 37 * i) % vocab);
      batch.positions.push_back(i);
      if (i > 0) batch.terms.push_back({begin + i - 1, batch.ids.back()});
    }
    batch.spans.push_back({begin, batch.tokens(), 0, 0});
  }
  return batch;
}

class StepAllocations : public ::testing::TestWithParam<Way> {};

TEST_P(StepAllocations, are_none_from_the_third_step_on) {
  if (!allocations_are_counted) GTEST_SKIP() << "sanitizers have a malloc of their own";
  const Way& way = GetParam();
  for (const char* shape : {"llama-tiny", "opt-tiny"}) {
    const ModelConfig config = model_shape(shape);
    const UpdateRule rule{3, DirectionKind::gaussian, way.storage, Rounding::stochastic, 1};
    const Placement placement = place(tensor_table(config), way);
    const TemporaryFolder folder;
    BlockFile disk(folder / "store", placement.chunks, way.storage,
                   {.spare_slots = 200, .callers = 2 + host_concurrency()});
    Engine engine(config, rule, way.compute, placement, &disk);
    import_weights(engine.store(), random_weights(config, 1), &disk);

    constexpr std::uint32_t steps = 14, warm_up = 2;
    const StepRule step{Difference::central, 1, 1e-3};
    std::vector<PackedBatch> batches;
    std::vector<Perturbation> perturbations;
    std::vector<StepRecord> records;
    for (std::uint32_t t = 0; t < steps; ++t) {
      batches.push_back(some_tokens(static_cast<std::int32_t>(config.vocab), static_cast<std::int32_t>(11 * t)));
      perturbations.push_back({rule.seed, t, rule.kind, step_evaluations(step.difference, 1, step.epsilon)});
      records.push_back({t, 1e-3, 0.1F, {1e-4F}, {1.0}, {1.0}, {1.0, 1.0}});
    }
    std::vector<double> log_prob(2 * batches.front().terms.size());
    std::uint64_t at_start = 0;
    for (std::uint32_t t = 0; t < steps; ++t) {
      if (t == warm_up) {
        kokkos_allocations = 0;
        Kokkos::Tools::Experimental::set_allocate_data_callback(
            [](Kokkos::Tools::SpaceHandle, const char*, const void*, std::uint64_t) { ++kokkos_allocations; });
        at_start = allocation_counts().calls;
      }
      engine.forward(batches[t], perturbations[t], log_prob);
      engine.store().append(std::move(records[t]));
    }
    const std::uint64_t calls = allocation_counts().calls - at_start;
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
    EXPECT_EQ(calls, 0U) << shape;
    EXPECT_EQ(kokkos_allocations, 0) << shape;
  }
}

const std::vector<Way> ways{
    {"resident", Storage::fp32, Compute::fp32, Tier::resident, false, false, 2, 1},
    {"resident_bf16", Storage::bf16, Compute::bf16, Tier::resident, false, false, 2, 1},
    {"staged", Storage::fp32, Compute::fp32, Tier::host, true, false, 3, 1},
    {"staged_groups", Storage::fp16, Compute::bf16, Tier::host, true, true, 2, 1},
    {"disk", Storage::fp32, Compute::fp32, Tier::disk, false, false, 2, 1},
    {"disk_every_4", Storage::bf16, Compute::fp32, Tier::disk, false, false, 2, 4},
    {"disk_groups", Storage::bf16, Compute::bf16, Tier::disk, false, true, 3, 1},
    {"disk_staged_groups", Storage::bf16, Compute::fp32, Tier::disk, true, true, 2, 4},
};
INSTANTIATE_TEST_SUITE_P(Tiers, StepAllocations, ::testing::ValuesIn(ways),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace distzo2
