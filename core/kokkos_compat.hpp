// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Kokkos_Core.hpp>

// What differs between Kokkos 3.4.1 and 4.x or 5.x, and nothing else.

namespace distzo2 {

/// Kokkos up for the life of this object, on so many host threads (0: what OpenMP says), without warnings on stderr.
class KokkosScope {
public:
  explicit KokkosScope(int threads) : scope_(settings(threads)) {}

private:
#if KOKKOS_VERSION >= 30700
  static Kokkos::InitializationSettings settings(int threads) {
    Kokkos::InitializationSettings s;
    if (threads > 0) s.set_num_threads(threads);
    s.set_disable_warnings(true);
    return s;
  }
#else
  static Kokkos::InitArguments settings(int threads) {
    Kokkos::InitArguments s;
    if (threads > 0) s.num_threads = threads;
    s.disable_warnings = true;
    return s;
  }
#endif
  Kokkos::ScopeGuard scope_;
};

}  // namespace distzo2
