// SPDX-License-Identifier: BSD-3-Clause
// A step allocates nothing, wherever the parameters lie: neither by malloc and its relatives, on any thread, nor in the
// eyes of Kokkos. What the library behind the GEMM seam allocates within its own calls is measured and told apart. A
// step is the forward passes of its evaluations and the record that updates theta.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/loading.hpp"
#include "core/engine.hpp"
#include "core/gemm.hpp"
#include "core/kokkos_scope.hpp"
#include "core/model_shapes.hpp"
#include "core/step.hpp"
#include "io/block_file.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/kokkos_allocations.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

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

// Tiles and panels of these shapes, as docs/performance.md gives them: matrices up to 1,024 wide have panels of 64
// rows.
constexpr std::size_t row_tile = 16, panel_rows = 64;

/// Products of a step: a panel of a matrix with a tile of rows, for each of two evaluations.
std::uint64_t gemm_calls(const TensorTable& table, int head, const PackedBatch& batch) {
  const auto tiles = [](std::size_t rows) { return 2 * ((rows + row_tile - 1) / row_tile); };
  std::uint64_t calls = 0;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
    const std::uint64_t panels = (static_cast<std::uint64_t>(t.rows) + panel_rows - 1) / panel_rows;
    if (t.matrix && i == head) calls += panels * tiles(batch.terms.size());  // each of another token
    if (t.matrix && i != head && is_decoder(table, t.block)) calls += panels * tiles(batch.ids.size());
  }
  return calls;
}

/// What the GEMM library allocates within each call, whoever calls it: oneDNN 2.6 a map of the arguments.
std::uint64_t allocations_of_a_gemm_call() {
  const GemmShape shape{Compute::fp32, row_tile, 64, 64, 64};
  Gemm& gemm = gemm_for(shape);
  std::vector<float> a(row_tile * 64), b(64 * 64), c(row_tile * 64);
  gemm.run(0, c.data(), a.data(), b.data());
  const std::uint64_t before = allocation_counts().calls;
  gemm.run(0, c.data(), a.data(), b.data());
  return allocation_counts().calls - before;
}

class StepAllocations : public ::testing::TestWithParam<Way> {};

TEST_P(StepAllocations, are_none_from_the_third_step_on) {
  if (!allocations_are_counted) return;  // sanitizers have a malloc of their own
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
        count_kokkos_allocations(true);
        at_start = allocation_counts().calls;
      }
      engine.forward(batches[t], perturbations[t], log_prob);
      engine.store().append(std::move(records[t]));
    }
    const std::uint64_t calls = allocation_counts().calls - at_start;
    count_kokkos_allocations(false);
    const TensorTable table = tensor_table(config);
    const int head = config.tied_head ? token_table : find_tensor(table, "lm_head.weight");
    const std::uint64_t expected =
        (steps - warm_up) * gemm_calls(table, head, batches.front()) * allocations_of_a_gemm_call();
    EXPECT_GE(calls, expected) << shape;
    // A thread that serves the disk may do its first work, which takes a buffer of its own, only after the warm-up.
    EXPECT_LE(calls, expected + (way.tier == Tier::disk ? 4 : 0)) << shape;
    EXPECT_EQ(kokkos_allocations(), 0) << shape;
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
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace distzo2
