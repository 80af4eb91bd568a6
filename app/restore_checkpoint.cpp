// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints back into a store, a chunk at a time.
#include "app/run_checkpoints.hpp"
#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace distzo2 {
namespace {

constexpr std::uint32_t unrestored = std::numeric_limits<std::uint32_t>::max();
constexpr int reading_threads = 3;

/// The parts of a checkpoint that can be read.
class OpenCheckpoint {
public:
  OpenCheckpoint(const FoundCheckpoint& found, const ChunkTable& table, std::vector<std::string>& problems)
      : step_(found.manifest.step), part_of_(table.chunks.size(), nullptr) {
    for (const CheckpointPart& part : found.manifest.parts) try {
        parts_.push_back(std::make_unique<CheckpointPartReader>(found.folder, part, table));
        for (int c = part.chunk_begin; c < part.chunk_end; ++c)
          if (parts_.back()->version(c) > step_)
            throw Error(ExitCode::file, fmt::format("{}: {} holds a chunk of step {}", found.folder.string(),
                                                    part_file_name(part.chunk_begin), parts_.back()->version(c)));
        std::fill(part_of_.begin() + part.chunk_begin, part_of_.begin() + part.chunk_end, parts_.back().get());
      } catch (const Error& e) {
        problems.emplace_back(e.what());
      }
  }
  std::uint32_t step() const { return step_; }
  /// Null where its part is lost.
  const CheckpointPartReader* part_of(int chunk) const { return part_of_[static_cast<std::size_t>(chunk)]; }

private:
  std::uint32_t step_;
  std::vector<std::unique_ptr<CheckpointPartReader>> parts_;
  std::vector<const CheckpointPartReader*> part_of_;
};

/// Of the ranks that share the parameters, the one that restores this chunk: what is on disk the first, which writes
/// there, of what is in memory about those whose slices the chunks are.
int restored_by(const Unit& unit, int chunk, int sharers) {
  if (unit.tier == Tier::disk) return 0;
  return (chunk - unit.chunk_begin) * sharers / (unit.chunk_end - unit.chunk_begin);
}

}  // namespace

Restored restore_checkpoint(ParameterStore& store, const BlockStorage* disk, Communicator& sharers,
                            const std::vector<FoundCheckpoint>& newest_first,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const ChunkTable& table = store.chunks();
  Restored restored{std::vector<bool>(table.chunks.size(), false), 0, {}};
  std::vector<OpenCheckpoint> checkpoints;
  for (const FoundCheckpoint& c : newest_first) checkpoints.emplace_back(c, table, restored.problems);

  // 1. The chunks that are this rank's to restore, each from the newest checkpoint where it checks.
  std::vector<int> mine;
  std::uint64_t total = 0, done = 0;
  for (const Unit& unit : store.placement().units)
    for (int c = unit.chunk_begin; c < unit.chunk_end; ++c)
      if (restored_by(unit, c, sharers.size()) == sharers.rank()) {
        mine.push_back(c);
        total += table.chunks[static_cast<std::size_t>(c)].bytes;
      }
  std::vector<std::uint32_t> versions(table.chunks.size(), unrestored), steps(table.chunks.size(), unrestored);
  std::vector<bool> on_disk(table.chunks.size(), false);
  for (const Unit& unit : store.placement().units)
    std::fill(on_disk.begin() + unit.chunk_begin, on_disk.begin() + unit.chunk_end, unit.tier == Tier::disk);
  std::mutex mutex;
  for_each_chunk(mine, table, reading_threads, [&](int c, std::byte* memory) {
    const auto i = static_cast<std::size_t>(c);
    const std::optional<std::uint32_t> held =
        on_disk[i] && disk->holds(c) ? std::optional(disk->version(c)) : std::nullopt;
    for (const OpenCheckpoint& from : checkpoints) {
      const CheckpointPartReader* const part = from.part_of(c);
      if (part == nullptr) continue;
      if (held && *held >= part->version(c)) break;
      try {
        part->read(c, memory);
      } catch (const Error& e) {
        const std::lock_guard lock(mutex);
        restored.problems.emplace_back(e.what());
        continue;
      }
      store.restore_chunk(c, memory, part->version(c));
      versions[i] = part->version(c);
      steps[i] = from.step();
      break;
    }
    const std::lock_guard lock(mutex);
    done += table.chunks[i].bytes;
    if (progress) progress(done, total);
  });

  // 2. What the others have restored of the copy that they share with this rank.
  const std::vector<int> counts(static_cast<std::size_t>(sharers.size()), static_cast<int>(versions.size()));
  const std::vector<std::uint32_t> all = sharers.gather(std::span<const std::uint32_t>(versions), counts);
  const std::vector<std::uint32_t> all_steps = sharers.gather(std::span<const std::uint32_t>(steps), counts);
  std::uint32_t oldest = unrestored;
  for (std::size_t i = 0; i < versions.size(); ++i)
    for (std::size_t r = 0; r < counts.size(); ++r) {
      const std::uint32_t version = all[r * versions.size() + i];
      if (version == unrestored) continue;
      if (static_cast<int>(r) != sharers.rank()) store.restore_chunk(static_cast<int>(i), nullptr, version);
      restored.chunks[i] = true;
      oldest = std::min(oldest, all_steps[r * versions.size() + i]);
    }
  restored.oldest_step = oldest == unrestored ? 0 : oldest;
  return restored;
}

}  // namespace distzo2
