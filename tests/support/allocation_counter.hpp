// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace distzo2 {

/// Allocations of this process as malloc and its relatives see them (operator new and Kokkos' host memory come by them
/// too): the test program that this is linked into has them replaced. Not under sanitizers, which have their own.
struct AllocationCounts {
  std::uint64_t calls = 0;       // since the last `reset_allocation_peak`, on all threads
  std::uint64_t live_bytes = 0;  // now
  std::uint64_t peak_bytes = 0;  // the most at once since then
};
AllocationCounts allocation_counts();
void reset_allocation_peak();

#ifdef __SANITIZE_ADDRESS__
constexpr bool allocations_are_counted = false;
#else
constexpr bool allocations_are_counted = true;
#endif

}  // namespace distzo2
