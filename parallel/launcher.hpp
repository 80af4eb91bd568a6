// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace distzo2 {

/// What started this process as one of the ranks of a job, as the environment tells.
struct Launcher {
  std::string name;      // "mpirun", "srun"
  int rank = 0;          // of this process
  int ranks = 0;         // that it started; 0 where it does not say
  bool connects = true;  // its processes can find each other; a plain srun starts them side by side
};

/// None on a workstation, and in a batch script outside `srun`. `variable(name)` is getenv or a test's.
std::optional<Launcher> find_launcher(const std::function<const char*(const char*)>& variable);
/// That of this process.
std::optional<Launcher> find_launcher();

}  // namespace distzo2
