// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parallel/communicator.hpp"
#include "parallel/launcher.hpp"

#include <optional>

namespace distzo2 {

/// MPI for the life of this object where a launcher started the process; otherwise the process is alone and MPI is not
/// touched. Throws Error (usage) where the launcher's processes do not find each other.
class MpiSession {
public:
  explicit MpiSession(const std::optional<Launcher>& launcher);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& world() { return world_; }

private:
  struct Up {
    Up();
    ~Up();
  };
  std::optional<Up> up_;
  Communicator world_;  // of all ranks; goes before MPI does
};

/// Throws Error (usage) that explains a world of `seen` ranks where the launcher started another number: `library` is
/// the MPI library that the program uses.
void check_world(const Launcher& launcher, int seen, const std::string& library);

/// Ends all ranks of the job at once with this exit code. Only with MPI up; does not return.
[[noreturn]] void abort_job(int exit_code);

}  // namespace distzo2
