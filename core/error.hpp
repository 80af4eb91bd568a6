// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>

namespace distzo2 {

/// The program's exit codes; every thrown Error carries one.
enum class ExitCode : int {
  done = 0,
  internal = 1,     // a broken invariant
  usage = 2,        // wrong usage or deck
  file = 3,         // a file that is bad, or cannot be read or written
  diverged = 4,     // stopped on a non-finite or diverged loss
  rank_failed = 5,  // a rank failed or replicas differ
  mismatch = 6,     // a replay gives another theta than a trajectory says
  stopped = 75      // stopped at a signal or time limit, the trajectory synced
};

/// Bad input or a failed operation: one message for the user that names file, key, value and what would be accepted.
class Error : public std::runtime_error {
public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

private:
  ExitCode code_;
};

}  // namespace distzo2
