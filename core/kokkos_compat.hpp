// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Kokkos_Core.hpp>

// What differs between Kokkos 3.4.1 and 4.x or 5.x, and nothing else.

namespace distzo2 {

/// The variable by which this version finds a tool, and the one of other versions.
#if KOKKOS_VERSION >= 30700
constexpr const char *kokkos_tool_variable = "KOKKOS_TOOLS_LIBS", *other_tool_variable = "KOKKOS_PROFILE_LIBRARY";
#else
constexpr const char *kokkos_tool_variable = "KOKKOS_PROFILE_LIBRARY", *other_tool_variable = "KOKKOS_TOOLS_LIBS";
#endif

#if KOKKOS_VERSION >= 30700
inline Kokkos::InitializationSettings kokkos_settings(int threads, int device) {
  Kokkos::InitializationSettings s;
  s.set_num_threads(threads);
  if (device >= 0) s.set_device_id(device);
  s.set_disable_warnings(true);
  return s;
}
#else
inline Kokkos::InitArguments kokkos_settings(int threads, int device) {
  Kokkos::InitArguments s;
  s.num_threads = threads;
  s.device_id = device;
  s.disable_warnings = true;
  return s;
}
#endif

}  // namespace distzo2
