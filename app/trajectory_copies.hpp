// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/open_run.hpp"
#include "app/run_folder.hpp"
#include "io/trajectory_file.hpp"
#include "parallel/job.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace distzo2 {

// Beside each store that counts as a checkpoint (`memory: {scratch persistent: true}`) stands a copy of the run's
// trajectory, written with it.

/// By all ranks, with the copies that each sees: the run goes on from the longest of them and of its own trajectory.
/// Throws Error (file) on all ranks where another one is not its beginning, naming both and the first record that
/// differs; and where none is whole. Returns what is to be said of it.
std::vector<std::string> take_longest(Job& job, OpenRun& run, const std::vector<std::filesystem::path>& copies);

/// By all ranks, once the run's own trajectory is open and before it gets another record: the copy at this path, made
/// to hold the same. Null where the path is empty.
std::unique_ptr<TrajectoryWriter> open_copy(Communicator& world, const RunFolder& folder,
                                            const std::filesystem::path& path, double sync_s);

}  // namespace distzo2
