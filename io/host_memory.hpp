// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// Something that bounds the host memory of this process's node.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string source;  // "the cgroup's memory.max (/sys/fs/cgroup/job_7)", "SLURM_MEM_PER_NODE", "MemAvailable"
};

/// Where limits are read: the machine, or a test's texts. Nothing where there is no such file or variable.
struct MemorySources {
  std::function<std::optional<std::string>(const std::string& path)> file;
  std::function<std::optional<std::string>(const std::string& name)> variable;
};
MemorySources machine_memory_sources();

/// Every limit that is found, the least first: memory.max and memory.high of this process's cgroup and of those above
/// it (version 2), memory.limit_in_bytes (version 1), SLURM_MEM_PER_NODE or SLURM_MEM_PER_CPU times SLURM_CPUS_ON_NODE,
/// and MemAvailable. What cannot be read or means "no limit" is left out.
std::vector<MemoryLimit> host_memory_limits(const MemorySources& sources);

/// What a plan may take of a limit: less a tenth, which is left to others; the source says so.
MemoryLimit less_a_tenth(const MemoryLimit& limit);

/// `host budget: auto`: the least limit over the ranks of the node, less a tenth; its source says so. Throws Error
/// (file) where no limit is found.
MemoryLimit automatic_host_budget(const MemorySources& sources, std::uint64_t ranks_of_node);

}  // namespace distzo2
