// SPDX-License-Identifier: BSD-3-Clause
#include "io/host_memory.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.hpp"

namespace distzo2 {
namespace {

using Files = std::map<std::string, std::string>;

MemorySources sources(const Files& files, const Files& variables = {}) {
  const auto look_up = [](const Files& texts) {
    return [texts](const std::string& name) -> std::optional<std::string> {
      const auto found = texts.find(name);
      return found == texts.end() ? std::nullopt : std::optional(found->second);
    };
  };
  return {look_up(files), look_up(variables)};
}

const Files meminfo{
    {"/proc/meminfo", "MemTotal:       32 kB\nMemFree:   1 kB\nMemAvailable:   20971520 kB\nBuffers: 3 kB\n"}};

Files with(Files more) {
  more.insert(meminfo.begin(), meminfo.end());
  return more;
}

MemoryLimit least(const Files& files, const Files& variables = {}) {
  return host_memory_limits(sources(files, variables)).at(0);
}

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST(HostMemory, available_memory_is_a_limit) {
  EXPECT_EQ(least(meminfo).bytes, 20 * gib);
  EXPECT_NE(least(meminfo).source.find("MemAvailable"), std::string::npos);
}

TEST(HostMemory, the_lowest_group_of_cgroup_2_counts_wherever_it_stands) {
  const Files own = with({{"/proc/self/cgroup", "0::/slurm/job_7/step_0\n"},
                          {"/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n"},
                          {"/sys/fs/cgroup/slurm/job_7/step_0/memory.high", "6442450944\n"},
                          {"/sys/fs/cgroup/slurm/job_7/memory.max", "8589934592\n"},
                          {"/sys/fs/cgroup/slurm/memory.max", "max\n"}});
  EXPECT_EQ(least(own).bytes, 6 * gib);
  EXPECT_EQ(least(own).source, "memory.high of the cgroup /sys/fs/cgroup/slurm/job_7/step_0");
  EXPECT_EQ(host_memory_limits(sources(own)).size(), 3u);

  // In a container the group's path is not there below the mount, which is the container's own group.
  const Files container =
      with({{"/proc/self/cgroup", "0::/docker/abc\n"}, {"/sys/fs/cgroup/memory.max", "4294967296\n"}});
  EXPECT_EQ(least(container).bytes, 4 * gib);
}

TEST(HostMemory, cgroup_1_counts_and_its_largest_number_is_no_limit) {
  Files files = with({{"/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/batch/7\n1:name=systemd:/\n"},
                      {"/sys/fs/cgroup/memory/batch/7/memory.limit_in_bytes", "9223372036854771712\n"}});
  EXPECT_EQ(least(files).bytes, 20 * gib);
  files["/sys/fs/cgroup/memory/batch/memory.limit_in_bytes"] = "2147483648\n";
  EXPECT_EQ(least(files).bytes, 2 * gib);
}

TEST(HostMemory, slurm_says_its_limits_in_mebibytes) {
  EXPECT_EQ(least(meminfo, {{"SLURM_MEM_PER_NODE", "10240"}}).bytes, 10 * gib);
  const MemoryLimit per_cpu = least(meminfo, {{"SLURM_MEM_PER_CPU", "2048"}, {"SLURM_CPUS_ON_NODE", "4"}});
  EXPECT_EQ(per_cpu.bytes, 8 * gib);
  EXPECT_EQ(per_cpu.source, "SLURM_MEM_PER_CPU times 4 processors");
  for (const char* odd : {"0", "", "10G", "-5", "99999999999999999999"})
    EXPECT_EQ(least(meminfo, {{"SLURM_MEM_PER_NODE", odd}}).bytes, 20 * gib) << odd;
}

TEST(HostMemory, the_budget_is_the_least_limit_over_the_ranks_less_a_tenth) {
  const MemoryLimit one = automatic_host_budget(sources(meminfo), 1), four = automatic_host_budget(sources(meminfo), 4);
  EXPECT_EQ(one.bytes, 18 * gib);
  EXPECT_EQ(four.bytes, 5 * gib - gib / 2);
  EXPECT_NE(four.source.find("over 4 ranks, less a tenth"), std::string::npos);
  EXPECT_THROW(automatic_host_budget(sources({}), 1), Error);
}

TEST(HostMemory, this_machine_has_some) {
  EXPECT_GT(automatic_host_budget(machine_memory_sources(), 1).bytes, 1u << 20);
}

}  // namespace
}  // namespace distzo2
