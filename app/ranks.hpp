// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/open_run.hpp"
#include "app/run_config.hpp"
#include "core/error.hpp"
#include "core/parameter_store.hpp"
#include "parallel/job.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

// What a run on several ranks does together. Rank 0 alone finds, makes and writes the run's folder and speaks. Each of
// these functions is called by all ranks.

/// `error` of rank 0, if there is one, is thrown on every rank.
void throw_on_all(Communicator& world, const std::optional<Error>& error);

/// Does `work` on rank 0. Returns when it is done; what it throws is thrown on every rank.
template <class Work>
void on_first(Communicator& world, Work&& work) {
  std::optional<Error> error;
  if (world.is_first()) try {
      std::forward<Work>(work)();
    } catch (const Error& e) {
      error = e;
    }
  throw_on_all(world, error);
}

/// What rank 0 found of a run, on every rank; and the folder that it made. The others hold no lock.
void share_run(Communicator& world, OpenRun& run);
void share_folder(Communicator& world, OpenRun& run);

/// Throw Error (rank failed) where a rank differs from rank 0, naming it: in the deck or the program; in data; in the
/// model, by theta_0's digest.
void check_same_deck(Job& job, const RunConfig& config);
void check_same_data(Job& job, const LoadedData& data);
void check_same_model(Job& job, std::uint64_t theta0_digest);
/// In theta after `step` steps: it names the first block. Returns theta's digest.
std::uint64_t check_same_theta(Job& job, ParameterStore& store, std::uint32_t step);

/// A line a rank: host, device, cores, NUMA nodes, threads, and how its device reaches the others; none of one rank
/// alone.
std::vector<std::string> rank_lines(Job& job);

}  // namespace distzo2
