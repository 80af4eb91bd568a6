// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/progress.hpp"
#include "app/run_changes.hpp"
#include "app/run_folder.hpp"
#include "app/run_lock.hpp"
#include "io/trajectory_file.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// A run's folder, locked for this process, and the trajectory that was found there. A new run has neither until its
/// folder is made.
struct OpenRun {
  std::optional<RunFolder> folder;
  std::unique_ptr<RunLock> lock;
  std::optional<Trajectory> found;    // none: the run begins at step 0
  std::optional<RunFolder> source;    // the run that `found` is of, where this is to be another one
  std::uint32_t steps_set_aside = 0;  // of the found run, beyond those of `found`
  RunChanges changes;                 // of the mathematics, on rank 0
  std::string taken;                  // bytes of `found` on rank 0, where it is a longer copy than the run's own file
  FoundSummary summary;               // on rank 0, where a run was found
  std::span<const StepRecord> records_found() const {
    return found ? std::span<const StepRecord>(found->steps) : std::span<const StepRecord>();
  }
  std::uint32_t steps_done() const { return found ? static_cast<std::uint32_t>(found->steps.size()) : 0; }
  /// Where the found records lie, and what belongs to them.
  const RunFolder& origin() const { return source ? *source : folder.value(); }
};

/// The deck as this command means it: with --resume, a run's own deck stands for the folder that it lies in, wherever
/// that was moved to, unless a --set names output/folder.
RunConfig for_resume(const TrainOptions& options, RunConfig config);

/// With --resume the run to go on with, where there is one; says which. Throws Error (usage) where another process
/// works on it, the deck changes its mathematics unasked, a summary stands there without a trajectory, it has not as
/// many steps as are asked for, or, without --resume or for a run that is to begin with the steps of another, the
/// deck's folder holds a run.
OpenRun find_run(const TrainOptions& options, const RunConfig& config, Progress& progress);

/// Whether all of the deck's steps are done and the summary is written.
bool is_finished(const OpenRun& run, std::uint32_t steps);

/// Makes and locks the folder of a run that has none yet.
const RunFolder& make_folder(OpenRun& run, const TrainOptions& options, const RunConfig& config);

/// What a run writes step by step, and the records that it begins with.
struct RunFiles {
  std::vector<StepRecord> records;
  std::vector<DigestRecord> digests;
  std::unique_ptr<TrajectoryWriter> trajectory;  // null on ranks other than 0
  std::unique_ptr<TrajectoryWriter> copy;        // app/trajectory_copies.hpp; null where this rank keeps none
  std::vector<TrajectoryWriter*> writers() const;
  MetricsFile metrics;
};

/// Of a rank other than 0: the records alone.
RunFiles records_of(OpenRun& run);

/// The files of a new run, or those of the found one, which is used up: its header must fit `header`, its evaluations
/// these data. What differs without harm, or was torn, is said.
RunFiles open_files(OpenRun& run, const TrajectoryHeader& header, const RunConfig& config, const LoadedData& data,
                    Progress& progress);

}  // namespace distzo2
