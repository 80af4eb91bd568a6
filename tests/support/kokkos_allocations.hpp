// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Allocations that Kokkos told its tools of, from the last `count_kokkos_allocations(true)` on.
void count_kokkos_allocations(bool on);
int kokkos_allocations();

}  // namespace distzo2
