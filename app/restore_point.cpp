// SPDX-License-Identifier: BSD-3-Clause
#include "app/restore_point.hpp"

#include "app/ranks.hpp"
#include "core/kokkos_scope.hpp"
#include "core/write_back.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distzo2 {
namespace {

/// Seconds that records take to be applied to all parameters, at the stated rates (core/write_back.hpp).
double replay_s(const MemoryPlan& plan, const RunConfig& config, std::size_t records) {
  double elements = 0;
  for (const Chunk& c : plan.placement.chunks.chunks) elements += static_cast<double>(c.elements);
  const double rate =
      plan.machine == Machine::device ? device_variates_per_s : host_concurrency() * host_variates_per_s;
  return elements * config.zo.directions * static_cast<double>(records) / rate;
}

std::string records_text(std::size_t records) {
  return fmt::format("{} record{}", records, records == 1 ? "" : "s");
}

}  // namespace

RestorePoint::RestorePoint(Job& job, const OpenRun& run, const MemoryPlan& plan, const RunConfig& config,
                           Progress& progress) {
  const ChunkTable& table = plan.placement.chunks;
  Communicator& world = job.world();
  on_first(world, [&] {
    if (run.found)
      usable_ = usable_checkpoints(run.origin().checkpoints(), *run.found, table, config.precision.storage);
  });
  share_checkpoints(world, usable_, table, config.precision.storage);
  for (const std::string& problem : usable_.problems) progress.say("note     passed over: " + problem);
  const std::size_t records = run.steps_done() - newest_step();
  if (run.found && (usable_.any || run.steps_set_aside > 0))
    progress.say(fmt::format("begins   with {}, and replays {} (about {})",
                             usable_.any ? usable_.newest_first.front().folder.string() : "the base model",
                             records_text(records), short_duration(replay_s(plan, config, records))));
}

PlacedModel::Restore RestorePoint::restore(Communicator& sharers, ByteProgress progress) {
  if (!usable_.any) return nullptr;
  return [this, &sharers, told = std::move(progress)](ParameterStore& store, const BlockStorage* disk) {
    restored_ = restore_checkpoint(
        store, disk, sharers, usable_.newest_first,
        [&](std::uint64_t done, std::uint64_t total) { told("restoring the checkpoint", done, total); });
    return restored_.chunks;
  };
}

std::vector<std::string> RestorePoint::problems() const {
  constexpr std::size_t most = 3;
  std::vector<std::string> lines;
  for (const std::string& problem : restored_.problems)
    if (lines.size() < most) lines.push_back("note     " + problem);
  if (restored_.problems.size() > most)
    lines.push_back(fmt::format("note     and {} more like these", restored_.problems.size() - most));
  if (!lines.empty())
    lines.emplace_back("note     what did not check comes from an older checkpoint or the base model, by replay");
  return lines;
}

std::string RestorePoint::how(std::size_t steps) const {
  if (std::ranges::find(restored_.chunks, true) == restored_.chunks.end()) return "by replay";
  return fmt::format("from the checkpoint of step {} and by replay of {}", newest_step(),
                     records_text(steps - newest_step()));
}

std::uint32_t RestorePoint::newest_step() const {
  return usable_.newest_step;
}

}  // namespace distzo2
