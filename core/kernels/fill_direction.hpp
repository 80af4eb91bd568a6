// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace distzo2 {

/// z(i) = z(t, k) at global index first + i, for every i of the view (contiguous, in the memory of `exec`): the device
/// form of SimdKernels' fill_gaussian and fill_rademacher, with the same bits. Does not wait for `exec`.
void fill_direction(const Kokkos::DefaultExecutionSpace& exec,
                    const Kokkos::View<float*, Kokkos::DefaultExecutionSpace::memory_space>& z, DirectionKind kind,
                    std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first);

}  // namespace distzo2
