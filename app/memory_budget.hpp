// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/run_config.hpp"
#include "core/memory_plan.hpp"
#include "io/host_memory.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace distzo2 {

/// The most that steps and evaluations of these data pack into one pass.
struct LargestPasses {
  BatchShape step, evaluation;
};
LargestPasses largest_passes(const RunConfig& config, const LoadedData& data);

/// The deck's `memory` sublist, and what `sources` say of the host where it leaves the host's budget open. A device's
/// budget that is left open is `free_device_bytes` less 1 GiB.
MemoryBudgets memory_budgets(const RunConfig& config, const MemorySources& sources,
                             std::optional<std::uint64_t> free_device_bytes = std::nullopt, int ranks_of_node = 1);

/// A note where the deck's host budget is more than `sources` say that a process can have here; else empty.
std::string host_budget_note(const RunConfig& config, const MemorySources& sources);

/// Where everything of this deck's run will be, before anything is allocated. `free_device_bytes`: a device computes.
/// An automatic host budget is divided by the ranks of the node; `shared`: they keep one copy of the parameters.
/// Throws Error (usage) for a budget that cannot hold the minimum.
MemoryPlan plan_run(const RunConfig& config, const ModelConfig& model, const TensorTable& table, const LoadedData& data,
                    int threads, const MemorySources& sources,
                    std::optional<std::uint64_t> free_device_bytes = std::nullopt, int ranks_of_node = 1,
                    bool shared = false);

/// The same on this machine's memory, on as many threads as this process has; in a program for GPUs, on its device,
/// whose free memory counts where none is given.
MemoryPlan plan_here(const RunConfig& config, const ModelConfig& model, const LoadedData& data,
                     std::optional<std::uint64_t> free_device_bytes = std::nullopt, int ranks_of_node = 1,
                     bool shared = false);

/// Threads that use a disk store at once: the lanes that read and write, and those that look rows up.
constexpr int store_callers(int threads) {
  return 2 + threads;
}

/// Bytes that the disk tier moves in a whole run: first the import of the base model into the store, then steps,
/// evaluations on dev and test sets, digests at start and end, best/ once and final/. A best/ that is written again,
/// and digests of consistency checks, come on top.
Traffic disk_traffic_of_run(const RunConfig& config, const LoadedData& data, const MemoryPlan& plan);

}  // namespace distzo2
