// SPDX-License-Identifier: BSD-3-Clause
#include "app/node_plan.hpp"

#include "app/memory_budget.hpp"
#include "core/compute_memory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// Equal on ranks of a node that read the very same files.
std::uint64_t files_of_model(const RunConfig& config) {
  if (config.model.random()) return weight_source(config).identity();
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(config.model.folder))
    paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  std::vector<std::uint64_t> words;
  for (const std::string& path : paths) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) continue;  // a link to nowhere: read by nobody
    words.insert(words.end(), {file.st_dev, file.st_ino, static_cast<std::uint64_t>(file.st_size)});
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

/// Equal on ranks that put the same units into the same places.
std::uint64_t digest_of(const Placement& p) {
  std::vector<std::uint64_t> words{p.groups, p.staging, static_cast<std::uint64_t>(p.buffers), p.write_back_every};
  for (const Unit& u : p.units)
    words.insert(words.end(), {static_cast<std::uint64_t>(u.chunk_end), static_cast<std::uint64_t>(u.tier)});
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
}

/// The plan of ranks that share, within the least of their budgets: what is free may differ as each of them looks.
MemoryPlan shared_plan(Communicator& node, const RunConfig& config, const ModelConfig& model, const LoadedData& data) {
  MemoryPlan plan = plan_here(config, model, data, std::nullopt, node.size(), true);
  const std::vector<std::uint64_t> budgets = node.gather(plan.host_budget);
  if (all_equal(budgets)) return plan;
  const std::string source = plan.host_source;
  RunConfig level = config;
  level.memory.host_budget = ByteCount{std::ranges::min(budgets)};
  plan = plan_here(level, model, data, std::nullopt, node.size(), true);
  plan.host_source = source;
  return plan;
}

}  // namespace

NodePlan plan_on_node(Job& job, const RunConfig& config, const ModelConfig& model, const LoadedData& data) {
  const int ranks = job.ranks_of_node();
  const bool several = ranks > 1 && !device_info();
  NodePlan result;
  result.store_rank = job.world().rank();
  const auto own_copies = [&](const std::string& why) {
    result.plan = plan_here(config, model, data, std::nullopt, ranks);
    if (several)
      result.line =
          fmt::format("slices   none: {}, so each of the {} ranks of a node has a copy of its own", why, ranks);
  };

  // Decided by all ranks of the node together; nodes need not be alike.
  Communicator node = job.world().split_by_node();
  const bool wanted = several && config.parallel.slices == Slices::automatic;
  if (!wanted) {
    own_copies("parallel/slices is off");
    return result;
  }
  result.plan = shared_plan(node, config, model, data);
  const bool same_places = all_equal(node.gather(digest_of(result.plan.placement)));
  const bool same_files = all_equal(node.gather(files_of_model(config)));
  if (!same_places || !same_files) {
    own_copies(!same_files ? "its ranks read different model files"
                           : "its ranks have different threads and so different plans");
    return result;
  }

  const std::size_t bytes = node_memory_bytes(result.plan.placement, ranks);
  result.window =
      std::make_unique<SharedWindow>(node, bytes, job.world().rank(), config.parallel.shared_memory_folder.string());
  result.store_rank = static_cast<int>(node.broadcast(static_cast<std::uint64_t>(job.world().rank())));
  result.line = fmt::format("slices   the {} ranks of a node have one copy of the parameters, in {}{}", ranks,
                            result.window->place().empty() ? "shared memory" : result.window->place(),
                            result.plan.disk_bytes > 0 ? "; what is on disk is read once for all of them" : "");
  return result;
}

}  // namespace distzo2
