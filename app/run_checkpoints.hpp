// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"
#include "core/chunk_table.hpp"
#include "core/parameter_store.hpp"
#include "io/checkpoint_manifest.hpp"
#include "io/trajectory_file.hpp"
#include "parallel/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace distzo2 {

// The checkpoints of a run stand in its folder, a folder each: checkpoints/step-300 holds theta after 300 steps as it
// was stored, chunk by chunk, each with its version; what its records beyond that version make of it stands in the
// trajectory, without which a checkpoint is nothing.

/// A checkpoint's folder in `checkpoints`.
std::filesystem::path checkpoint_folder(const std::filesystem::path& checkpoints, std::uint32_t step);

struct FoundCheckpoint {
  std::filesystem::path folder;
  CheckpointManifest manifest;
};

/// What a run can begin with.
struct UsableCheckpoints {
  std::vector<FoundCheckpoint> newest_first;
  std::vector<std::string> problems;  // why others are passed over, a text each
  bool any = false;                   // on all ranks, whether rank 0 found one
  std::uint32_t newest_step = 0;      // of that one, on all ranks
};

/// Those in `checkpoints` that the records of `found` lead to, of a model with these chunks.
UsableCheckpoints usable_checkpoints(const std::filesystem::path& checkpoints, const Trajectory& found,
                                     const ChunkTable& table, Storage storage);

/// What rank 0 found, on every rank that can read it there. By all ranks.
void share_checkpoints(Communicator& world, UsableCheckpoints& found, const ChunkTable& table, Storage storage);

/// Removes all but the newest `keep` up to `step`, and those of later steps, which another continuation of the run
/// left. Each is renamed first, so that what is half removed is none. What cannot be removed is in nobody's way.
void remove_old_checkpoints(const std::filesystem::path& checkpoints, std::uint32_t step, std::uint32_t keep);

/// What restoring came to.
struct Restored {
  std::vector<bool> chunks;           // those that were
  std::uint32_t oldest_step = 0;      // of the checkpoints that they came from
  std::vector<std::string> problems;  // what did not check and was taken from elsewhere
};

/// Gives the store, before its first record, each chunk of the newest checkpoint in which it checks, but for what
/// `disk` holds in as new a version. By all ranks of `sharers`, which have one copy of the parameters: each restores a
/// part. `progress` may be null; it is called by one thread at a time.
Restored restore_checkpoint(ParameterStore& store, const BlockStorage* disk, Communicator& sharers,
                            const std::vector<FoundCheckpoint>& newest_first,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace distzo2
