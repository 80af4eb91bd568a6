// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// KOKKOS_TOOLS_LIBS and KOKKOS_PROFILE_LIBRARY name libraries that watch every kernel and allocation. Throws Error
/// (usage) where one cannot be loaded: Kokkos would print lines of its own and go on without it.
void check_kokkos_tools();

}  // namespace distzo2
