// SPDX-License-Identifier: BSD-3-Clause
// A step allocates nothing, wherever the parameters lie: neither by malloc and its relatives, on any thread, nor in the
// eyes of Kokkos. What the library behind the GEMM seam allocates within its own calls (oneDNN 2.6 a map of the
// arguments) is measured and told apart, and nothing else is let pass. A step is the forward passes of its evaluations
// and the record that updates theta. Each tier is a process of its own under ctest: what is made at a first use counts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/loading.hpp"
#include "core/engine.hpp"
#include "core/gemm.hpp"
#include "core/kokkos_scope.hpp"
#include "core/model_shapes.hpp"
#include "core/pieces.hpp"
#include "io/block_file.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/kokkos_allocations.hpp"
#include "tests/support/small_model.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

struct Setting {
  Tiers tiers;
  Storage storage;
  Compute compute;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << setting.tiers.name;
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

/// What the GEMM library allocates within each call from among our threads, where it computes on the calling one.
std::uint64_t allocations_of_a_gemm_call() {
  const GemmShape shape{Compute::fp32, row_tile, 64, 64, 64};
  Gemm& gemm = gemm_for(shape);
  std::vector<float> a(row_tile * 64), b(64 * 64), c(row_tile * 64);
  std::uint64_t calls = 0;
  for_each_piece(1, [&](std::size_t) {
    gemm.run(0, c.data(), a.data(), b.data());
    const std::uint64_t before = allocation_counts().calls;
    gemm.run(0, c.data(), a.data(), b.data());
    calls = allocation_counts().calls - before;
  });
  return calls;
}

class StepAllocations : public ::testing::TestWithParam<Setting> {};

TEST_P(StepAllocations, are_none_from_the_third_step_on) {
  if (!allocations_are_counted) return;  // sanitizers have a malloc of their own
  if (host_concurrency() == 1) return;   // libgomp makes a team anew for each region of one thread
  const Setting& setting = GetParam();
  for (const char* shape : {"llama-tiny", "opt-tiny"}) {
    const ModelConfig config = model_shape(shape);
    const UpdateRule rule{3, DirectionKind::gaussian, setting.storage, Rounding::stochastic, 1};
    constexpr std::size_t chunk = std::size_t{1} << 16;  // so that a block has many
    const Placement placement = place(tensor_table(config), setting.storage, setting.tiers, chunk);
    const TemporaryFolder folder;
    BlockFile disk(folder / "store", placement.chunks, setting.storage,
                   {.spare_slots = 200, .callers = 2 + host_concurrency()});
    Engine engine(config, rule, setting.compute, placement, &disk);
    import_weights(engine.store(), random_weights(config, 1), &disk);

    constexpr std::uint32_t steps = 14, warm_up = 2;
    const StepRule step{Difference::central, 1, 1e-3};
    std::vector<PackedBatch> batches;
    std::vector<Perturbation> perturbations;
    std::vector<StepRecord> records;
    for (std::uint32_t t = 0; t < steps; ++t) {
      batches.push_back(sequences({9, 20, 14}, [&, next = 11 * t]() mutable {
        return static_cast<std::int32_t>((next += 37) % static_cast<std::uint32_t>(config.vocab));
      }));
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
    EXPECT_EQ(calls, expected) << shape << ", of which " << allocations_of_a_gemm_call() << " in each product are "
                               << gemm_fingerprint() << "'s";
    EXPECT_EQ(kokkos_allocations(), 0) << shape;
  }
}

const std::vector<Setting> settings{
    {{"resident", Tier::resident, false, false, 2, 1}, Storage::fp32, Compute::fp32},
    {{"resident_bf16", Tier::resident, false, false, 2, 1}, Storage::bf16, Compute::bf16},
    {{"staged", Tier::host, true, false, 3, 1}, Storage::fp32, Compute::fp32},
    {{"staged_groups", Tier::host, true, true, 2, 1}, Storage::fp16, Compute::bf16},
    {{"disk", Tier::disk, false, false, 2, 1}, Storage::fp32, Compute::fp32},
    {{"disk_every_4", Tier::disk, false, false, 2, 4}, Storage::bf16, Compute::fp32},
    {{"disk_groups", Tier::disk, false, true, 3, 1}, Storage::bf16, Compute::bf16},
    {{"disk_staged_groups", Tier::disk, true, true, 2, 4}, Storage::bf16, Compute::fp32},
};
INSTANTIATE_TEST_SUITE_P(Tiers, StepAllocations, ::testing::ValuesIn(settings),
                         [](const auto& setting) { return setting.param.tiers.name; });

}  // namespace
}  // namespace distzo2
