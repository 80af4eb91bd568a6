// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "io/trajectory_file.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

// What a resume may change of a run's mathematics, asked for by name: what only decides the numbers that a record
// holds. What all records are read by (seed, directions, storage, rounding, the base model) stands in the trajectory's
// header and can not be changed. `changes.jsonl` in the run's folder tells which change was made after which step.

/// A key that had one value for the records before `step`, and another one from there on.
struct RecordedChange {
  std::uint32_t step = 0;
  std::string key, from, to;
  bool operator==(const RecordedChange&) const = default;
};

/// The name under which other training examples from files of the same names are recorded.
inline constexpr const char* training_examples = "training examples";

/// Those of a run with so many steps; one after a later step is of another continuation. Error (file) for a damaged
/// line.
std::vector<RecordedChange> recorded_changes(const std::filesystem::path& file, std::uint32_t steps);
void write_changes(const std::filesystem::path& file, std::span<const RecordedChange> changes);

/// Throws Error (usage) for a name that is no mathematical key of a deck, or one that cannot be changed.
void check_change_names(std::span<const std::string> names);

/// Throws Error (usage): why the run of this trajectory cannot be gone on with.
[[noreturn]] void refuse_resume(const std::filesystem::path& trajectory, const std::string& what);

/// What a run is asked to change and what it changed before.
struct RunChanges {
  std::vector<std::string> names;         // of --change
  std::vector<RecordedChange> recorded;   // of the run so far
  std::vector<RecordedChange> to_record;  // by this resume
  std::vector<RecordedChange> all() const;
};

/// Adds the deck's keys that differ from those that the last record was made with to `changes.to_record`. Throws Error
/// (usage) naming those that were not asked for.
void check_same_mathematics(const TrajectoryHeader& was, const RunConfig& config,
                            const std::filesystem::path& trajectory, std::uint32_t steps, RunChanges& changes);

/// The same for the training examples, whose digest differs where a key of `data` does, or the files' contents do.
void check_same_examples(const TrajectoryHeader& was, std::uint64_t data_digest,
                         const std::filesystem::path& trajectory, std::uint32_t steps, RunChanges& changes);

}  // namespace distzo2
