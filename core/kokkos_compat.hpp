// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdlib>
#ifdef KOKKOS_ENABLE_OPENMP
#include <omp.h>
#endif

// What differs between Kokkos 3.4.1 and 4.x or 5.x, and nothing else.

namespace distzo2 {

/// Kokkos up for the life of this object, on so many host threads (1 to max_host_threads), without warnings on stderr.
class KokkosScope {
public:
  explicit KokkosScope(int threads) : scope_((prepare_threads(threads), settings(threads))) {}

private:
  /// Kokkos first counts the threads of a region that says nothing: there must not be more than asked for. Its own
  /// variable may not say something else.
  static void prepare_threads([[maybe_unused]] int threads) {
    ::unsetenv("KOKKOS_NUM_THREADS");
#ifdef KOKKOS_ENABLE_OPENMP
    omp_set_num_threads(threads);
#endif
  }
#if KOKKOS_VERSION >= 30700
  static Kokkos::InitializationSettings settings(int threads) {
    Kokkos::InitializationSettings s;
    s.set_num_threads(threads);
    s.set_disable_warnings(true);
    return s;
  }
#else
  static Kokkos::InitArguments settings(int threads) {
    Kokkos::InitArguments s;
    s.num_threads = threads;
    s.disable_warnings = true;
    return s;
  }
#endif
  Kokkos::ScopeGuard scope_;
};

}  // namespace distzo2
