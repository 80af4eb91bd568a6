// SPDX-License-Identifier: BSD-3-Clause
// For the sources of this folder and their tests: what stands behind a Communicator.
#pragma once

#include "parallel/communicator.hpp"

#include <mpi.h>

namespace distzo2 {

/// Throws Error (rank failed) with MPI's own text where `call` did not succeed.
void check_mpi(int code, const char* call);

/// Tests a request until it is done; a rank that waits for long leaves its core to others.
void wait_for(MPI_Request& request, const char* call);

struct Communicator::Mpi {
  explicit Mpi(MPI_Comm its);  // takes the communicator over
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  MPI_Comm comm;
  int rank = 0, size = 1;
};

}  // namespace distzo2
