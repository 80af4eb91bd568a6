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

bool all_equal(const std::vector<std::uint64_t>& values) {
  return std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
}

}  // namespace

NodePlan plan_on_node(Job& job, const RunConfig& config, const ModelConfig& model, const LoadedData& data) {
  const int ranks = job.ranks_of_node();
  const auto plan = [&](bool shared) { return plan_here(config, model, data, std::nullopt, ranks, shared); };
  const bool several = ranks > 1 && !device_info();
  NodePlan result;
  const auto own_copies = [&](const std::string& why) {
    result.plan = plan(false);
    if (several)
      result.line =
          fmt::format("slices   none: {}, so each of the {} ranks of a node has a copy of its own", why, ranks);
  };

  // Decided by all ranks of the node together; nodes need not be alike.
  Communicator node = job.world().split_by_node();
  const bool wanted = several && config.parallel.slices == Slices::automatic;
  if (wanted) result.plan = plan(true);
  const bool fits = wanted && !result.plan.placement.streams_any();
  const auto units = static_cast<std::uint64_t>(fits ? result.plan.placement.units.size() : 0);
  const std::vector<std::uint64_t> of_all = node.gather(units);
  const bool same_files = all_equal(node.gather(wanted ? files_of_model(config) : 0));
  if (!wanted)
    own_copies("parallel/slices is off");
  else if (units == 0 || !all_equal(of_all))
    own_copies("parameters stream");
  else if (!same_files)
    own_copies("its ranks read different model files");
  const bool shared = wanted && units > 0 && all_equal(of_all) && same_files;
  if (!shared) return result;

  const std::size_t bytes = node_memory_bytes(result.plan.placement, ranks);
  result.window =
      std::make_unique<SharedWindow>(node, bytes, job.world().rank(), config.parallel.shared_memory_folder.string());
  result.line = fmt::format("slices   the {} ranks of a node have one copy of the parameters, in {}", ranks,
                            result.window->place().empty() ? "shared memory" : result.window->place());
  return result;
}

}  // namespace distzo2
