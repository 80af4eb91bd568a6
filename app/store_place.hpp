// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"

#include <filesystem>
#include <string>

namespace distzo2 {

// A store outside its run's folder does not come along where that is moved. The folder's `store.path` says where it is,
// and of which folder: a copy of a run has no part in the store.

/// What a run's folder says of its store; empty paths where it says nothing.
struct StoreRecord {
  std::filesystem::path store;
  std::filesystem::path run;  // the folder's own path then
};
StoreRecord read_store_record(const RunFolder& run);

/// Brings the store that `was` tells of, or this rank's beside it, to `place`, where that is another one. Returns what
/// is to be said of it: that it was moved, or that it is left where it stands. `place` is empty where this run needs no
/// store, `removed` what a good end removes in any case.
std::string settle_store(const StoreRecord& was, const RunFolder& run, const std::filesystem::path& place, int rank,
                         const std::filesystem::path& removed);

/// Keeps where rank 0's store is, before it is made; a store in the run's folder needs no record.
void write_store_record(const RunFolder& run, const std::filesystem::path& place);

/// After the store was removed.
void remove_store_record(const RunFolder& run);

}  // namespace distzo2
