// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/on_ranks.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <thread>

#include "test_paths.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// The process that started this one, 0 where it is gone.
pid_t parent_of(const std::string& stat) {  // pid (name) state ppid ...
  const std::size_t name = stat.rfind(") ");
  return name == std::string::npos ? 0 : std::stoi(stat.substr(name + 4));
}

/// Whether this process started that one, or the one that did.
bool is_started_here(pid_t process) {
  while (process > 1 && process != ::getpid())
    process = parent_of(text_of_file(fs::path("/proc") / std::to_string(process) / "stat"));
  return process == ::getpid();
}

/// The rank of a process that is the program and was started by a launcher that this process started, else -1.
int rank_of(const fs::path& process) {
  const std::string stat = text_of_file(process / "stat");
  if (stat.find("(distzo2)") == std::string::npos) return -1;
  if (!is_started_here(parent_of(stat))) return -1;
  const std::string environment = '\0' + text_of_file(process / "environ");
  const std::string key = std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=";
  const std::size_t at = environment.find(key);
  return at == std::string::npos ? -1 : std::stoi(environment.substr(at + key.size()));
}

}  // namespace

ProgramOptions on_ranks(int ranks, const std::string& script, const std::vector<std::string>& nodes) {
  ProgramOptions options;
  options.wrapper = {test_paths::mpiexec, "-n", std::to_string(ranks)};
  for (const std::string& node : nodes) options.wrapper.insert(options.wrapper.end(), {"--host", node});
  if (!script.empty()) options.wrapper.insert(options.wrapper.end(), {"sh", "-c", script + "; exec \"$0\" \"$@\""});
  options.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                         "OMPI_MCA_mpi_yield_when_idle=1",
                         "OMPI_MCA_rmaps_base_oversubscribe=1",
                         "OMPI_MCA_hwloc_base_binding_policy=none",
                         "ASAN_OPTIONS=detect_leaks=0"};  // Open MPI keeps some memory until the end
  if (!nodes.empty())  // what would be started on another machine is started here: nothing may go by the host's name
    options.environment.insert(options.environment.end(),
                               {"OMPI_MCA_plm_rsh_agent=" + (test_paths::sources / "tests/support/no_ssh").string(),
                                "OMPI_MCA_btl=tcp,self", "PMIX_MCA_gds=hash"});
  return options;
}

std::string on_rank(int rank, const std::string& what) {
  return "if [ $OMPI_COMM_WORLD_RANK = " + std::to_string(rank) + " ]; then " + what + "; fi";
}

std::vector<pid_t> pids_of_ranks(RunningProgram& launcher, int ranks) {
  std::vector<pid_t> pids(static_cast<std::size_t>(ranks), 0);
  while (launcher.running() && std::ranges::count(pids, 0) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::error_code gone;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", gone)) {
      const std::string name = entry.path().filename();
      pid_t pid = 0;
      if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
      if (const int rank = rank_of(entry.path()); rank >= 0 && rank < ranks) pids[static_cast<std::size_t>(rank)] = pid;
    }
  }
  return pids;
}

void expect_gone(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    const fs::path process = fs::path("/proc") / std::to_string(pid);
    for (int i = 0; i < 500 && fs::exists(process); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(fs::exists(process)) << text_of_file(process / "status");
  }
}

}  // namespace distzo2
