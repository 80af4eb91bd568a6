// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/progress.hpp"
#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "core/clock.hpp"
#include "core/parameter_store.hpp"
#include "io/checkpoint_part.hpp"
#include "io/trajectory_file.hpp"
#include "parallel/job.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// Threads that help the calling one to write a checkpoint.
constexpr int checkpoint_threads = 3;

/// What a run's checkpoints are made of.
struct CheckpointSource {
  Job& job;
  const RunConfig& config;
  const RunFolder& folder;
  ParameterStore& store;
  TrajectoryWriter* trajectory;  // null on ranks other than 0
  std::uint64_t theta0_digest;
  /// Whether a rank alone of its node reads what is on disk, and so writes all.
  bool one_reads;
  Progress& progress;
  /// theta's digest after so many steps, by all ranks; called where no parameter streams.
  std::function<std::uint64_t(std::uint32_t steps)> theta_digest;
};

/// Writes a run's checkpoints (app/run_checkpoints.hpp): beside, each rank of rank 0's machine a part, the manifest
/// last, the trajectory synced before it; then renamed, and old ones removed. One that cannot be written is given up
/// with a warning: base model, trajectory and the one before it stand as they were.
class Checkpointing {
public:
  /// `last`: steps of the checkpoint that the run went on from, 0 where there was none.
  Checkpointing(const CheckpointSource& source, std::uint32_t last);

  /// Whether this rank's clock says that one is due; the ranks agree on it by a flag of the step's exchange.
  bool minutes_are_over() const;
  /// After so many steps: takes one where it is due, by the steps or by that flag, and fits into `seconds_left` on
  /// every rank; says so where it does not. By all ranks.
  void after_step(std::uint32_t steps, bool flagged, double seconds_left);
  /// Where the run stops after so many steps: the same, and says what was decided in any case. By all ranks.
  void at_stop(std::uint32_t steps, double seconds_left);
  /// What the next one will take, by the last one, or by its bytes; 0 where there are none.
  double estimate_s() const;

private:
  struct Written {
    std::string problem;  // empty: none
    CheckpointPart part;  // of no chunk: nothing was to be written
  };
  /// Whether the next one fits into the time left, the same on all ranks; `decided`: that in words.
  bool fits(std::uint32_t steps, double seconds_left, std::string& decided);
  void take(std::uint32_t steps);
  std::filesystem::path begin(std::uint32_t steps, std::string& problem);
  Written write_part(const std::filesystem::path& folder);
  void finish(const std::filesystem::path& folder, std::uint32_t steps, const std::vector<CheckpointPart>& parts,
              std::optional<std::uint64_t> theta_digest);
  std::pair<int, int> own_chunks() const;

  CheckpointSource s_;
  int writers_ = 0, writer_ = -1;  // ranks that write, and which of them this one is; -1: none
  std::uint64_t bytes_ = 0;        // of a checkpoint
  std::uint32_t last_;             // steps of the last one, 0 where there is none
  Clock::time_point last_time_ = Clock::now();
  std::optional<double> took_s_;
};

}  // namespace distzo2
