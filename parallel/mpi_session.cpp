// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/mpi_session.hpp"

#include "core/error.hpp"
#include "parallel/mpi_handle.hpp"

#include <unistd.h>

#include <array>

namespace distzo2 {
namespace {

/// "Open MPI v4.1.4"
std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "an unknown MPI library";
  const std::string all(text.data(), text.data() + length);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace

MpiSession::Up::Up() {
  int given = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given) != MPI_SUCCESS)
    throw Error(ExitCode::rank_failed, "MPI_Init_thread failed");
  if (given < MPI_THREAD_MULTIPLE) {
    const std::string library = library_name();
    MPI_Finalize();
    throw Error(ExitCode::usage, library +
                                     ": does not let several threads call it (MPI_THREAD_MULTIPLE), which the "
                                     "heartbeat of the ranks needs; use a build of MPI that does");
  }
}

MpiSession::Up::~Up() {
  MPI_Finalize();
}

MpiSession::MpiSession(const std::optional<Launcher>& launcher) {
  if (!launcher) return;
  if (!launcher->connects)
    throw Error(ExitCode::usage,
                launcher->name + " started " + std::to_string(launcher->ranks) +
                    " processes that cannot find each other; start them with srun --mpi=pmix, or with mpirun");
  up_.emplace();
  MPI_Comm world = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup");
  world_ = Communicator(std::make_unique<Communicator::Mpi>(world));
  check_world(*launcher, world_.size(), library_name());
}

MpiSession::~MpiSession() = default;

void check_world(const Launcher& launcher, int seen, const std::string& library) {
  if (launcher.ranks == 0 || seen == launcher.ranks) return;
  throw Error(ExitCode::usage, launcher.name + " started " + std::to_string(launcher.ranks) + " ranks, but MPI sees " +
                                   std::to_string(seen) +
                                   (seen == 1 ? ": each would train alone, and all would write the same run. " : ". ") +
                                   "The launcher does not belong to the MPI library of this program, " + library +
                                   "; use the mpirun of that library, or srun --mpi=pmix");
}

void abort_job(int exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  ::_exit(exit_code);
}

}  // namespace distzo2
