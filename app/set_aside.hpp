// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"
#include "io/trajectory_file.hpp"

#include <cstdint>
#include <filesystem>

namespace distzo2 {

/// Keeps a run as it is, before it goes on from an earlier step: copies its trajectory, metrics, deck and changes into
/// a new folder `set-aside-001` (the first free number) of its folder, durably, and moves its summary and final/ there,
/// and best/ where that is of a step after `step`. What is there can be inspected, exported from and gone on with like
/// any run. Returns the folder.
std::filesystem::path set_aside(const RunFolder& folder, std::uint32_t step);

/// Gives a new run's folder the metrics of `source` and the records that `found` holds of it.
void take_records(const RunFolder& source, const RunFolder& folder, const Trajectory& found);

}  // namespace distzo2
