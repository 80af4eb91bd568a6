// SPDX-License-Identifier: BSD-3-Clause
#include "core/kokkos_scope.hpp"

#include "core/exec.hpp"
#include "core/kokkos_compat.hpp"

#include <cstdlib>
#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

namespace distzo2 {

namespace {

/// A tool named by either of the two variables reaches the one that this version reads; both would be refused.
void prepare_tools() {
  for (const char* name : {other_tool_variable, kokkos_tool_variable})
    if (const char* value = std::getenv(name); value != nullptr && *value == '\0') ::unsetenv(name);
  if (const char* tool = std::getenv(other_tool_variable); tool != nullptr) ::setenv(kokkos_tool_variable, tool, 0);
  ::unsetenv(other_tool_variable);
}

}  // namespace

struct KokkosScope::Up {
  Up(int threads, int device) : guard(kokkos_settings(threads, device)) {}
  Kokkos::ScopeGuard guard;
};

KokkosScope::KokkosScope(int threads, int device) {
  // Kokkos first counts the threads of a region that says nothing: there must not be more than asked for. Its own
  // variable may not say something else.
  ::unsetenv("KOKKOS_NUM_THREADS");
#ifdef KOKKOS_ENABLE_OPENMP
  omp_set_num_threads(threads);
#endif
  prepare_tools();
  up_ = std::make_unique<Up>(threads, device);
}

KokkosScope::~KokkosScope() = default;

int host_concurrency() {
  return HostExec().concurrency();
}

}  // namespace distzo2
