// SPDX-License-Identifier: BSD-3-Clause
#include "app/machine_probe.hpp"

#include "app/loading.hpp"
#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/model_shapes.hpp"
#include "core/placement.hpp"
#include "core/step.hpp"
#include "core/z_alone.hpp"
#include "io/disk_speed.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace distzo2 {
namespace {

constexpr int tokens = 256;

/// Widths of a published model; few blocks, and a head that has as large a part in them as there.
ModelConfig probe_model() {
  ModelConfig model = model_shape("opt-125m");
  model.layers = 2;
  model.vocab = 6144;
  return model;
}

/// One sequence, each token but the last with a loss term.
PackedBatch probe_batch(const ModelConfig& model) {
  PackedBatch batch;
  for (int i = 0; i < tokens; ++i) {
    batch.ids.push_back(static_cast<std::int32_t>(i * 131 % model.vocab));
    batch.positions.push_back(i);
    if (i + 1 < tokens) batch.terms.push_back({i, static_cast<int>((i + 1) * 131 % model.vocab)});
  }
  batch.spans.push_back({0, tokens, 0, 0});
  return batch;
}

/// What such a step has to do, part by part: the cost model's count, at rates of one a second.
StepPrediction counted_work(const ModelConfig& model, const TensorTable& table, Compute compute) {
  MemoryPlan plan;
  plan.placement = resident_placement(table, Storage::fp32);
  StepWork work;
  work.model = model;
  work.compute = compute;
  work.tokens_of_sequence = tokens;
  work.terms_of_sequence = tokens - 1;
  MachineRates ones;
  ones.gemm_fp32_flop = ones.gemm_bf16_flop = ones.gemm_fp16_flop = 1;
  ones.attention_flop = ones.normals = ones.memory_bytes = 1;
  return predict_step(table, plan, work, ones);
}

double amount_of(const StepPrediction& counted, std::string_view name) {
  return std::ranges::find(counted.terms, name, &CostTerm::name)->amount;
}

}  // namespace

PassRates measure_passes(Compute compute, int repeats) {
  const ModelConfig model = probe_model();
  const TensorTable table = tensor_table(model);
  const UpdateRule rule{1, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  Engine engine(model, rule, compute);
  import_weights(engine.store(), random_weights(model, 1));
  const PackedBatch batch = probe_batch(model);
  Perturbation step{rule.seed, 0, rule.kind, step_evaluations(Difference::central, 1, 1e-3)};
  std::vector<double> log_prob(step.evaluations.size() * batch.terms.size());

  std::vector<double> products, attention, z, weights;
  for (int i = -1; i < repeats; ++i) {  // the first one warms up, and leaves a record to apply
    engine.take_times();
    step.t = static_cast<std::uint32_t>(i + 1);
    const auto start = Clock::now();
    engine.forward(batch, step, log_prob);
    const double wall = seconds_since(start);
    engine.store().append({step.t, 1e-6, 0.0F, {1e-9F}, {1.0}, {1.0}, {1.0, 1.0}});
    const PassTimes times = engine.take_times();
    if (i < 0) continue;
    const ZAlone alone = z_alone(model, step);
    // The clocks of threads leave out waiting at the ends of parts.
    const double panels = times.weights_s + times.gemm_s;
    const double waiting = std::max(1.0, (wall - times.attention_s - times.norm_s - alone.lookups_s) / panels);
    products.push_back(times.gemm_s * waiting);
    attention.push_back(times.attention_s);
    z.push_back(alone.passes_s + alone.lookups_s);
    weights.push_back(std::max(times.weights_s * waiting - alone.passes_s, 0.05 * times.weights_s));
  }
  const StepPrediction counted = counted_work(model, table, compute);
  return {.gemm_flop = amount_of(counted, "products") / median(products),
          .attention_flop = amount_of(counted, "attention") / median(attention),
          .normals = amount_of(counted, "z") / median(z),
          .memory_bytes = amount_of(counted, "weights") / median(weights)};
}

double measure_copies() {
  constexpr std::size_t unit = std::size_t{28} << 20;  // a block of OPT-125M in fp32
  constexpr std::size_t units = 4;                     // more than caches hold
  constexpr double least_s = 0.5;
  const auto copy = [](double& rate) {
    std::vector<std::byte> from(unit * units, std::byte{1}), to(unit * units);
    double bytes = 0;
    const auto start = Clock::now();
    for (std::size_t i = 0; seconds_since(start) < least_s; ++i) {
      std::memcpy(to.data() + i % units * unit, from.data() + (i + 1) % units * unit, unit);
      bytes += static_cast<double>(unit);
    }
    rate = bytes / seconds_since(start);
  };
  double up = 0, down = 0;
  std::thread other([&] { copy(down); });
  copy(up);
  other.join();
  return (up + down) / 2;
}

void measure_disk_rates(MachineRates& rates, const std::filesystem::path& folder, double seconds) {
  constexpr std::uint64_t bytes = std::uint64_t{512} << 20;
  const auto rate = [&](double read_share) {
    return measure_disk(folder, {.read_share = read_share}, bytes, seconds).bytes_per_s();
  };
  rates.disk_read_bytes = rate(1);
  rates.disk_write_bytes = rate(0);
  rates.disk_mixed_bytes = rate(0.5);
}

}  // namespace distzo2
