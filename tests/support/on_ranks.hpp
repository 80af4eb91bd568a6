// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/run_program.hpp"

namespace distzo2 {

/// The program on so many ranks of this machine, which wait without keeping a core. `script`, where given, is run by
/// each rank's shell before: it may look at its rank in $OMPI_COMM_WORLD_RANK. `nodes`, where given, are names with a
/// number of ranks each, "node1:2": ranks of different nodes share no memory.
ProgramOptions on_ranks(int ranks, const std::string& script = {}, const std::vector<std::string>& nodes = {});

/// Such a script by which one rank alone does this.
std::string on_rank(int rank, const std::string& what);

/// The processes of the ranks that this launcher started, in their order; waits until all are there.
std::vector<pid_t> pids_of_ranks(RunningProgram& launcher, int ranks);

/// No process of these is left, now or within a few seconds.
void expect_gone(const std::vector<pid_t>& pids);

}  // namespace distzo2
