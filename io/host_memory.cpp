// SPDX-License-Identifier: BSD-3-Clause
#include "io/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/error.hpp"
#include "io/trimmed.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace {

// Version 1 says "no limit" with the largest multiple of a page below 2^63; nothing real is as large as this.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

/// "/a/b", "/a", "/": a group and those above it.
std::vector<std::string> group_and_parents(std::string group) {
  std::vector<std::string> groups;
  for (; group.starts_with('/') && group != "/"; group.erase(group.rfind('/'))) {
    groups.push_back(group);
  }
  groups.emplace_back("");
  return groups;
}

class Finder {
public:
  explicit Finder(const MemorySources& sources) : sources_(sources) {}

  void cgroups() {
    std::istringstream lines(sources_.file("/proc/self/cgroup").value_or(""));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t first = line.find(':');
      const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
      if (second == std::string::npos) {
        continue;
      }
      const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
      for (const std::string& group : group_and_parents(line.substr(second + 1))) {
        if (controllers == ",,") {
          for (const char* name : {"memory.max", "memory.high"}) {
            limit_in(std::string("/sys/fs/cgroup") + group, name);
            limit_in(std::string("/sys/fs/cgroup/unified") + group, name);
          }
        } else if (controllers.find(",memory,") != std::string::npos) {
          limit_in(std::string("/sys/fs/cgroup/memory") + group, "memory.limit_in_bytes");
        }
      }
    }
  }

  void batch_system() {
    constexpr std::uint64_t mib = std::uint64_t{1} << 20;
    const std::uint64_t per_node = variable("SLURM_MEM_PER_NODE"), per_cpu = variable("SLURM_MEM_PER_CPU");
    const std::uint64_t cpus = variable("SLURM_CPUS_ON_NODE");
    if (per_node > 0) {
      add(per_node, mib, "SLURM_MEM_PER_NODE");
    } else if (per_cpu > 0 && cpus > 0 && cpus < no_limit / mib) {
      add(per_cpu, cpus * mib, fmt::format("SLURM_MEM_PER_CPU times {} processors", cpus));
    }
  }

  void available() {
    std::istringstream words(sources_.file("/proc/meminfo").value_or(""));
    for (std::string word; words >> word;) {
      if (std::string kib; word == "MemAvailable:" && words >> kib) {
        add(parse_unsigned(kib).value_or(0), 1024, "the memory that is available (MemAvailable)");
      }
    }
  }

  std::vector<MemoryLimit> limits;

private:
  std::uint64_t variable(const char* name) const {
    return parse_unsigned(sources_.variable(name).value_or("")).value_or(0);
  }

  void limit_in(const std::string& folder, const char* name) {
    if (const auto text = sources_.file(folder + "/" + name)) {
      add(parse_unsigned(trimmed(*text, " \t\n")).value_or(no_limit), 1,
          fmt::format("{} of the cgroup {}", name, folder));
    }
  }

  void add(std::uint64_t count, std::uint64_t unit, std::string source) {
    if (count > 0 && count < no_limit / unit) {
      limits.push_back({count * unit, std::move(source)});
    }
  }

  const MemorySources& sources_;
};

}  // namespace

MemorySources machine_memory_sources() {
  return {[](const std::string& path) -> std::optional<std::string> {
            std::ifstream in(path);
            if (!in) {
              return std::nullopt;
            }
            return std::string(std::istreambuf_iterator<char>(in), {});
          },
          [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value == nullptr ? std::nullopt : std::optional<std::string>(value);
          }};
}

std::vector<MemoryLimit> host_memory_limits(const MemorySources& sources) {
  Finder finder(sources);
  finder.cgroups();
  finder.batch_system();
  finder.available();
  std::ranges::stable_sort(finder.limits, {}, &MemoryLimit::bytes);
  return std::move(finder.limits);
}

MemoryLimit less_a_tenth(const MemoryLimit& limit) {
  return {limit.bytes - limit.bytes / 10, limit.source + ", less a tenth"};
}

MemoryLimit automatic_host_budget(const MemorySources& sources, std::uint64_t ranks_of_node) {
  const std::vector<MemoryLimit> limits = host_memory_limits(sources);
  if (limits.empty()) {
    throw Error(ExitCode::file,
                "memory/host budget: auto finds no limit of the host's memory (/proc/meminfo); give it in the deck");
  }
  const std::uint64_t share = limits.front().bytes / std::max<std::uint64_t>(ranks_of_node, 1);
  return less_a_tenth(
      {share, limits.front().source + (ranks_of_node > 1 ? fmt::format(" over {} ranks", ranks_of_node) : "")});
}

}  // namespace distzo2
