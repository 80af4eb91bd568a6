// SPDX-License-Identifier: BSD-3-Clause
// Overlap as the design defines it, (sum of lane busy - wall) / (sum - longest lane), over steps of the pipeline of a
// device run on the CPU, with the buffers that the plan asks for, where computing and where the link bounds. Long tests
// run alone: the figures need a machine that does nothing else.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "app/loading.hpp"
#include "core/engine.hpp"
#include "core/kokkos_scope.hpp"
#include "core/memory_plan.hpp"
#include "core/step.hpp"
#include "tests/full/record_result.hpp"

namespace distzo2 {
namespace {

constexpr double wanted_overlap = 0.95;
constexpr std::uint32_t warm_up = 2, measured_steps = 8;

ModelConfig some_model() {
  ModelConfig c;
  c.family = FamilyKind::llama;
  c.vocab = 8192;  // tables as large as a block, as OPT-6.7B has them
  c.hidden = c.embed_dim = 512;
  c.layers = 12;
  c.heads = c.kv_heads = 8;
  c.head_dim = 64;
  c.ffn = 2048;
  c.max_positions = 512;
  return c;
}

Placement planned() {
  const ModelConfig model = some_model();
  Workload work;
  work.model = model;
  work.batch = {2, 128, 128};
  work.tokens_looked_up = 128;
  MemoryBudgets budgets;
  budgets.host = std::uint64_t{8} << 30;
  const Placement p = plan_memory(tensor_table(model), work, Machine::staged_host, budgets).placement;
  EXPECT_EQ(p.buffers, 3);
  EXPECT_TRUE(p.staging);
  return p;
}

void report(const std::string& name, const Utilisation& use) {
  record_result(name, {{"overlap", use.overlap},
                       {"wall_s", use.wall_s},
                       {"compute_s", use.lanes[static_cast<int>(LaneKind::compute)].busy_s},
                       {"upload_s", use.lanes[static_cast<int>(LaneKind::upload)].busy_s},
                       {"download_s", use.lanes[static_cast<int>(LaneKind::download)].busy_s}});
  EXPECT_GE(use.overlap, wanted_overlap) << name;
}

/// Computing that is a wait on the clock: nothing but the pipeline is measured.
Utilisation with_made_up_computing(double compute_s_a_unit, double link_s_a_unit) {
  Placement p = planned();
  std::vector<int> order;
  std::vector<std::shared_ptr<std::byte>> memory;
  std::vector<std::byte*> host(p.units.size(), nullptr);
  const auto arena = make_kokkos_arena();
  std::size_t largest = 0;
  for (int u = 0; u < std::ssize(p.units); ++u) {
    const Unit& unit = p.units[static_cast<std::size_t>(u)];
    if (!p.streams(unit) || unit.block == 0 || unit.block + 2 >= std::ssize(p.unit_begin)) continue;
    order.push_back(u);
    memory.push_back(arena->allocate("distzo2::test", unit.bytes));
    host[static_cast<std::size_t>(u)] = memory.back().get();
    largest = std::max(largest, unit.bytes);
  }
  UnitPipeline pipeline(p, host, nullptr, *arena, nullptr, {static_cast<double>(largest) / link_s_a_unit});
  std::vector<LaneSpan> spans;
  double begin = 0;
  for (std::uint32_t step = 0; step < warm_up + measured_steps; ++step) {
    if (step == warm_up) begin = trace_clock();
    pipeline.begin_pass(order, step, order);
    for (const int u : order) {
      pipeline.acquire(u);
      std::this_thread::sleep_for(std::chrono::duration<double>(compute_s_a_unit));
      pipeline.release(u, true, step + 1);
    }
    pipeline.end_pass();
  }
  const double end = trace_clock();
  pipeline.take_spans(spans);
  return utilisation(spans, begin, end, 0);
}

TEST(Overlap, of_made_up_computing_is_as_wanted) {
  report("overlap_made_up_compute_bound", with_made_up_computing(0.02, 0.012));
  report("overlap_made_up_transfer_bound", with_made_up_computing(0.008, 0.02));
}

/// Steps of a real engine; the time that a step takes with this link, and what the lanes did.
Utilisation of_engine(double link_bytes_per_s) {
  const ModelConfig model = some_model();
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  Engine engine(model, rule, Compute::fp32, planned(), nullptr, {link_bytes_per_s});
  import_weights(engine.store(), random_weights(model, 1));
  PackedBatch batch;
  for (int i = 0; i < 128; ++i) {
    batch.ids.push_back(i * 13 % 2048);
    batch.positions.push_back(i);
    batch.terms.push_back({i, i * 17 % 2048});
  }
  batch.spans.push_back({0, 128, 0, 0});
  std::vector<double> log_prob(2 * batch.terms.size());
  std::vector<LaneSpan> spans;
  double begin = 0;
  for (std::uint32_t t = 0; t < warm_up + measured_steps; ++t) {
    if (t == warm_up) begin = trace_clock();
    engine.forward(batch, {rule.seed, t, rule.kind, step_evaluations(Difference::central, 1, 1e-3)}, log_prob);
    engine.store().append({t, 1e-3, 0.0F, {1e-4F}, {1.0}, {1.0}, {1.0, 1.0}});
  }
  const double end = trace_clock();
  engine.store().pipeline()->take_spans(spans);
  return utilisation(spans, begin, end, 0);
}

TEST(Overlap, of_an_engine_on_one_thread_is_as_wanted) {
  if (host_concurrency() != 1) return;  // runs again with OMP_NUM_THREADS=1
  const Utilisation free = of_engine(0);
  const double compute_s = free.lanes[static_cast<int>(LaneKind::compute)].busy_s;
  const double bytes = static_cast<double>(free.lanes[static_cast<int>(LaneKind::upload)].bytes);
  report("overlap_engine_compute_bound", of_engine(bytes / (0.6 * compute_s)));
  report("overlap_engine_transfer_bound", of_engine(bytes / (1.8 * compute_s)));
}

}  // namespace
}  // namespace distzo2
