// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <Kokkos_Core.hpp>

namespace distzo2 {

/// The instance that host kernels run on; first argument of every kernel.
using HostExec = Kokkos::DefaultHostExecutionSpace;

}  // namespace distzo2
