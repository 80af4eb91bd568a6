// SPDX-License-Identifier: BSD-3-Clause
#include "app/memory_budget.hpp"

#include "app/checkpointing.hpp"
#include "app/step_losses.hpp"
#include "app/time_left.hpp"
#include "core/compute_memory.hpp"
#include "core/kokkos_scope.hpp"
#include "core/step.hpp"
#include "io/block_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace distzo2 {
namespace {

/// Of a device's free memory, what is left to others where the deck does not say.
constexpr std::uint64_t device_reserve = std::uint64_t{1} << 30;

Machine machine_of(const RunConfig& config, bool device) {
  return device ? Machine::device : config.memory.staging == Staging::always ? Machine::staged_host : Machine::host;
}

}  // namespace

LargestPasses largest_passes(const RunConfig& config, const LoadedData& data) {
  LargestPasses largest;
  if (data.train) {
    const BatchSize size = largest_batch(data.train->examples, config.zo.batch, data.objective);
    largest.step = {evaluation_count(config.zo.difference, static_cast<int>(config.zo.directions)), size.tokens,
                    size.terms};
  }
  for (const auto* set : {&data.dev, &data.test})
    if (*set) {
      const BatchSize size = largest_evaluation((*set)->examples);
      largest.evaluation = {1, std::max(largest.evaluation.tokens, size.tokens),
                            std::max(largest.evaluation.terms, size.terms)};
    }
  return largest;
}

MemoryBudgets memory_budgets(const RunConfig& config, const MemorySources& sources,
                             std::optional<std::uint64_t> free_device_bytes, int ranks_of_node) {
  const MemorySection& memory = config.memory;
  MemoryBudgets budgets;
  if (memory.host_budget) {
    budgets.host = memory.host_budget->count;
  } else {
    const MemoryLimit limit = automatic_host_budget(sources, static_cast<std::uint64_t>(ranks_of_node));
    budgets.host = limit.bytes;
    budgets.host_source = "auto: " + limit.source;
  }
  if (memory.device_budget) {
    budgets.device = memory.device_budget->count;
  } else if (free_device_bytes) {
    budgets.device = *free_device_bytes > device_reserve ? *free_device_bytes - device_reserve : 0;
    budgets.device_source = "auto: the device's free memory, or what --gpu says of it, less 1 GiB";
  }
  if (memory.groups) budgets.groups = *memory.groups == Groups::on;
  budgets.write_back_every = memory.write_back_every;
  if (memory.buffers) budgets.buffers = static_cast<int>(*memory.buffers);
  return budgets;
}

std::string host_budget_note(const RunConfig& config, const MemorySources& sources) {
  const std::vector<MemoryLimit> limits = host_memory_limits(sources);
  if (!config.memory.host_budget || limits.empty() || config.memory.host_budget->count <= limits.front().bytes)
    return {};
  return fmt::format("memory/host budget: {} is more than a process can have here: {} ({})",
                     bytes_text(config.memory.host_budget->count), bytes_text(limits.front().bytes),
                     limits.front().source);
}

MemoryPlan plan_run(const RunConfig& config, const ModelConfig& model, const TensorTable& table, const LoadedData& data,
                    int threads, const MemorySources& sources, std::optional<std::uint64_t> free_device_bytes,
                    int ranks_of_node, bool shared) {
  const auto [step, evaluation] = largest_passes(config, data);
  Workload work;
  work.model = model;
  work.storage = config.precision.storage;
  work.compute = config.precision.compute;
  work.round_every = update_rule(config).round_every;
  work.batch = {std::max(step.evaluations, evaluation.evaluations), std::max(step.tokens, evaluation.tokens),
                std::max(step.terms, evaluation.terms)};
  work.directions = static_cast<int>(config.zo.directions);
  work.threads = threads;
  work.sharers = shared ? ranks_of_node : 1;
  work.store_bytes = BlockFile::memory_bytes({.callers = store_callers(threads)});
  work.tokens_looked_up = static_cast<std::uint64_t>(work.batch.tokens);
  const auto bytes = [&](const BatchShape& b) { return planned_activation_bytes(model, b, threads); };
  work.host_activations = {{"activations and panels", std::max(bytes(step), bytes(evaluation)), MemoryPlace::host}};
  if (config.checkpoint.on())
    work.host_activations.push_back({"chunks on their way to a checkpoint",
                                     chunk_memory_bytes(make_chunk_table(table, work.storage), checkpoint_threads),
                                     MemoryPlace::host});
  return plan_memory(table, work, machine_of(config, free_device_bytes.has_value()),
                     memory_budgets(config, sources, free_device_bytes, ranks_of_node));
}

MemoryPlan plan_here(const RunConfig& config, const ModelConfig& model, const LoadedData& data,
                     std::optional<std::uint64_t> free_device_bytes, int ranks_of_node, bool shared) {
  if (const std::optional<DeviceInfo> device = device_info(); device && !free_device_bytes)
    free_device_bytes = device->free_bytes;
  return plan_run(config, model, tensor_table(model), data, host_concurrency(), machine_memory_sources(),
                  free_device_bytes, ranks_of_node, shared);
}

Traffic disk_traffic_of_run(const RunConfig& config, const LoadedData& data, const MemoryPlan& plan) {
  const std::uint64_t steps = config.zo.steps;
  std::uint64_t passes = 0;
  if (data.dev)
    passes +=
        dev_evaluations_from(config.zo.steps, evaluation_interval(config), 0) * evaluation_passes(data.dev->examples);
  if (data.test) passes += 2 * evaluation_passes(data.test->examples);
  // All of it once more for each digest of theta, of the imported and of the final one, and for each model written.
  const std::uint64_t models = config.model.random() ? 0 : data.dev ? 2 : 1;
  return {(steps + passes) * plan.disk.read + (2 + models) * plan.disk_bytes,
          plan.disk_bytes + steps * plan.disk.written};
}

}  // namespace distzo2
