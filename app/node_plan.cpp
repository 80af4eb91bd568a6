// SPDX-License-Identifier: BSD-3-Clause
#include "app/node_plan.hpp"

#include "app/memory_budget.hpp"
#include "core/compute_memory.hpp"
#include "core/error.hpp"
#include "core/node_memory.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

/// Equal on ranks of a node that read the very same files, as they are now; what else lies beside them may come and go.
std::uint64_t files_of_model(const RunConfig& config) {
  if (config.model.random()) return weight_source(config).identity();
  std::vector<std::filesystem::path> files = CheckpointReader(config.model.folder).files();
  files.push_back(config.model.folder / "config.json");
  std::vector<std::uint64_t> words;
  for (const std::filesystem::path& path : files) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0)
      throw Error(ExitCode::file, fmt::format("{}: {}", path.string(), std::strerror(errno)));
    words.insert(words.end(),
                 {file.st_dev, file.st_ino, static_cast<std::uint64_t>(file.st_size),
                  static_cast<std::uint64_t>(file.st_mtim.tv_sec), static_cast<std::uint64_t>(file.st_mtim.tv_nsec)});
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

/// Of the tier of each unit.
std::uint64_t digest_of_tiers(const Placement& p) {
  std::vector<std::uint64_t> words{p.staging};
  for (const Unit& u : p.units)
    words.insert(words.end(), {static_cast<std::uint64_t>(u.chunk_end), static_cast<std::uint64_t>(u.tier)});
  return XXH3_64bits(words.data(), words.size() * sizeof(std::uint64_t));
}

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
}

/// What the ranks of a node would do differently, the first that is found; empty where they put the same units into the
/// same places.
std::string difference_of_plans(Communicator& node, int rank, const MemoryPlan& plan) {
  const Placement& p = plan.placement;
  const std::vector<std::uint64_t> ranks = node.gather(static_cast<std::uint64_t>(rank));
  const std::vector<std::pair<const char*, std::string>> fields{
      {"memory/groups", p.groups ? "on" : "off"},
      {"memory/buffers", fmt::format("{}", p.buffers)},
      {"memory/write back every", fmt::format("{}", p.write_back_every)},
      {"what goes to disk", bytes_text(plan.disk_bytes)},
      {"the tier of a unit", fmt::format("as digest {:016x} says", digest_of_tiers(p))}};
  for (const auto& [name, mine] : fields) {
    const std::vector<std::string> all = node.gather(mine);
    const auto other = std::ranges::find_if(all, [&](const std::string& v) { return v != all.front(); });
    if (other != all.end())
      return fmt::format("{} would be {} on rank {}, {} on rank {}", name, all.front(), ranks.front(), *other,
                         ranks[static_cast<std::size_t>(other - all.begin())]);
  }
  return {};
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
    else if (config.parallel.slices == Slices::automatic && !config.parallel.shared_memory_folder.empty())
      result.line =
          "note     parallel/shared memory folder: no ranks share parameters here, so that it changes nothing";
  };

  // Decided by all ranks of the node together; nodes need not be alike.
  Communicator node = job.world().split_by_node();
  const bool wanted = several && config.parallel.slices == Slices::automatic;
  if (!wanted) {
    own_copies("parallel/slices is off");
    return result;
  }
  result.plan = shared_plan(node, config, model, data);
  const std::string difference = difference_of_plans(node, job.world().rank(), result.plan);
  const bool same_files = all_equal(node.gather(files_of_model(config)));
  if (!same_files || !difference.empty()) {
    own_copies(same_files ? difference : "its ranks read different model files");
    return result;
  }

  const std::size_t bytes = node_memory_bytes(result.plan.placement, ranks);
  result.window =
      std::make_unique<SharedWindow>(node, bytes, job.world().rank(), config.parallel.shared_memory_folder.string());
  result.store_rank = static_cast<int>(node.broadcast(static_cast<std::uint64_t>(job.world().rank())));
  result.sharers = std::move(node);
  result.line = fmt::format("slices   the {} ranks of a node have one copy of the parameters, in {}{}", ranks,
                            result.window->place().empty() ? "shared memory" : result.window->place(),
                            result.plan.disk_bytes > 0 ? "; what is on disk is read once for all of them" : "");
  return result;
}

}  // namespace distzo2
