// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/placed_model.hpp"
#include "app/progress.hpp"
#include "app/run_changes.hpp"
#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "core/engine.hpp"
#include "io/trajectory_file.hpp"
#include "parallel/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace distzo2 {

/// theta_0's digest, by reading the base model where its store was found with chunks in it: the store's identity tells
/// models apart by the beginnings of their tensors, and chunks with updates say nothing of theta_0. Throws Error (file)
/// where chunks without updates are of other weights than the model has. That a run began with others is
/// check_same_run's to say. By all ranks of `sharers`, which have one copy: the first of them reads the base model, and
/// each a part of the store. `progress` may be null.
std::uint64_t theta0_digest(const RunConfig& config, PlacedModel& placed, const std::optional<Trajectory>& found,
                            Communicator& sharers, const ByteProgress& progress);

/// The header of the trajectory that this deck, data and freshly imported model begin.
TrajectoryHeader trajectory_header(const RunConfig& config, const LoadedData& data, const Engine& engine,
                                   std::uint64_t theta0_digest);

/// Throws Error (file) where the records decayed other parameters than those of `mask` (decay_mask_digest).
void check_same_decay(const TrajectoryHeader& was, std::uint64_t mask, const std::filesystem::path& trajectory);

/// Throws Error (usage) naming what differs where going on with `was` after so many steps would change the mathematics
/// unasked: objective, weights or training examples; and as check_same_decay does. Returns a note where only the
/// arithmetic changed, else an empty text.
std::string check_same_run(const TrajectoryHeader& was, const TrajectoryHeader& now, const RunConfig& config,
                           const std::filesystem::path& trajectory, std::uint32_t steps, RunChanges& changes);

/// Throws Error (usage) where a recorded evaluation is of other examples than the set of its name now has.
void check_same_evaluations(const RunFolder& folder, const LoadedData& data);

/// Throws Error (mismatch) where the digest of theta after a replay is not the one that the run recorded.
void check_replayed(const DigestRecord& recorded, std::uint64_t digest, const std::filesystem::path& trajectory);

/// Applies these records to the engine's fresh theta in one pass over the parameters.
void replay(Engine& engine, const std::vector<StepRecord>& records);

}  // namespace distzo2
