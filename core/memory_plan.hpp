// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device_memory.hpp"
#include "core/model_config.hpp"
#include "core/placement.hpp"
#include "core/precision.hpp"
#include "core/write_back.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// What computes: the host itself, the host behind a staging copy (`staging: always`), or a device of its own memory.
enum class Machine : std::uint8_t { host, staged_host, device };

/// What the deck's sublist `memory` says, and what bounds the rest. An empty optional is "auto".
struct MemoryBudgets {
  std::optional<std::uint64_t> device;  // staged host: of parameters and their buffers; auto: the least that works
  std::uint64_t host = 0;               // all that the process allocates on the host
  std::string device_source = "memory/device budget", host_source = "memory/host budget";  // what bounds them
  std::optional<bool> groups;
  std::optional<std::uint32_t> write_back_every;
  std::optional<int> buffers;
};

/// What runs.
struct Workload {
  ModelConfig model;
  Storage storage = Storage::fp32;
  Compute compute = Compute::fp32;
  std::uint32_t round_every = 1;
  BatchShape batch;                          // the largest of a step
  std::vector<MemoryTerm> host_activations;  // where the host computes: what passes need beside parameters
  std::uint64_t tokens_looked_up = 0;        // of a step: embedding rows gathered, at most
  int directions = 1, threads = 1;           // of a step; of the host
  int sharers = 1;                           // ranks that keep one copy of what is in memory of the host
  std::uint64_t store_bytes = 0;             // memory that a store on disk takes for its transfers
};

/// Bytes that move between two tiers.
struct Traffic {
  std::uint64_t read = 0, written = 0;
};

/// Where everything is, before anything is allocated.
struct MemoryPlan {
  Machine machine = Machine::host;
  BatchShape batch;               // the largest that goes forward at once
  Placement placement;            // tiers chosen, buffers sized
  std::vector<MemoryTerm> terms;  // all that is allocated, each where it lies
  std::uint64_t device_budget = 0, host_budget = 0;
  std::string device_source, host_source;
  std::uint64_t resident_bytes = 0, host_bytes = 0, disk_bytes = 0;  // of parameters
  int spare_slots = 0;                                               // of the disk store: io/block_file.hpp
  Traffic link, disk;                                                // of a step; the link is to the device or buffers
  WriteBackCost write_back_cost;                                     // where something is on disk
  std::uint64_t total(MemoryPlace place) const;
};

/// Chooses tiers within the budgets, the fastest first; spreads what is resident evenly among what streams; prefers
/// whole blocks to groups and three buffers to two where they fit, and where nothing else is asked for. Throws Error
/// (usage) naming the key of a budget that cannot hold the minimum, and the smallest that would do.
MemoryPlan plan_memory(const TensorTable& table, const Workload& work, Machine machine, const MemoryBudgets& budgets);

/// Resident blocks, r of n: block i is one where this is true.
constexpr bool spread_evenly(std::uint64_t i, std::uint64_t r, std::uint64_t n) {
  return (i + 1) * r / n > i * r / n;
}

/// What a process takes before it allocates anything of the model: code and libraries, data, thread stacks.
constexpr std::uint64_t host_baseline_bytes = std::uint64_t{128} << 20;
/// Of it, what is there for small things that come with streaming; they have lines of their own in a plan.
constexpr std::uint64_t host_baseline_spare_bytes = std::uint64_t{32} << 20;

}  // namespace distzo2
