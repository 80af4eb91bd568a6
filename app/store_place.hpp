// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/node_plan.hpp"
#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "parallel/job.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace distzo2 {

/// Where a run keeps what goes to disk: `store` in its folder, or a folder of its own in `memory/scratch folder`.
/// Ranks other than 0 have theirs beside it.
std::filesystem::path store_folder(const RunConfig& config, const RunFolder& run, int rank = 0);
/// A rank's place, where that of rank 0 is `first`.
std::filesystem::path store_of_rank(const std::filesystem::path& first, int rank);

// A run may go on with another scratch folder, on other ranks, and in a folder that was moved. `store.path` in its
// folder tells of every place where its stores are or were, so that none outlives its end. A copy of the run has no
// part in those outside its folder.

/// What a rank takes of the run's stores, and what is to be said of them.
struct StorePlace {
  std::filesystem::path store;  // this rank's or its node's; empty where nothing of this rank's is on disk
  std::filesystem::path copy;   // of the trajectory, that this rank keeps beside its store; empty: none
  std::vector<std::filesystem::path> copies;  // those that may stand where this rank sees them: its own; on rank 0 all
  std::vector<std::string> notes;  // of all ranks, on all: what was moved, and what stands and is not used any more
};

/// By all ranks, before the store is made: keeps its place in the run's folder, brings each rank's own store to it from
/// where that was before, and looks for stores that nobody uses now.
StorePlace place_store(Job& job, const RunConfig& config, const RunFolder& run, const NodePlan& of_node);

/// By all ranks, at an end after which no store is kept: removes whatever any rank has or had at any of the places.
/// Returns notes of what could not be removed, of all ranks, on all: the run is whole without that.
std::vector<std::string> remove_stores(Job& job, const RunConfig& config, const RunFolder& run);

}  // namespace distzo2
