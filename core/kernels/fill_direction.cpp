// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/fill_direction.hpp"

#include "core/random.hpp"

namespace distzo2 {
namespace {

using Exec = Kokkos::DefaultExecutionSpace;
using Directions = Kokkos::View<float*, Exec::memory_space>;

/// One call makes the four values of indices 4 b .. 4 b + 3: a block of normals, or a nibble of signs.
struct FillDirection {
  Directions z;
  std::uint64_t seed;
  std::uint32_t t;
  std::uint32_t k;
  std::uint64_t first;
  std::uint64_t first_block;  // first / 4
  bool gaussian;

  KOKKOS_INLINE_FUNCTION void operator()(const std::uint64_t b) const {
    const std::uint64_t index = 4 * (first_block + b);
    float values[4];
    direction_block(gaussian, seed, t, k, first_block + b, values);
    for (std::uint64_t j = 0; j < 4; ++j) {
      // Below the first index the difference wraps around, and is then beyond the view's end as well.
      const std::uint64_t i = index + j - first;
      if (i < z.extent(0)) {
        z(i) = values[j];
      }
    }
  }
};

}  // namespace

void fill_direction(const Exec& exec, const Directions& z, DirectionKind kind, std::uint64_t seed, std::uint32_t t,
                    std::uint32_t k, std::uint64_t first) {
  if (z.extent(0) == 0) {
    return;
  }
  const std::uint64_t first_block = first / 4;
  const std::uint64_t blocks = (first + z.extent(0) - 1) / 4 - first_block + 1;
  Kokkos::parallel_for("distzo2::random::fill_direction",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::uint64_t>>(exec, 0, blocks),
                       FillDirection{z, seed, t, k, first, first_block, kind == DirectionKind::gaussian});
}

}  // namespace distzo2
