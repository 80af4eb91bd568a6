// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/kokkos_allocations.hpp"

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>

namespace distzo2 {
namespace {

std::atomic<int> counted{0};

void count(Kokkos::Tools::SpaceHandle, const char*, const void*, std::uint64_t) {
  ++counted;
}

}  // namespace

void count_kokkos_allocations(bool on) {
  if (on) counted = 0;
  Kokkos::Tools::Experimental::set_allocate_data_callback(on ? count : nullptr);
}

int kokkos_allocations() {
  return counted;
}

}  // namespace distzo2
