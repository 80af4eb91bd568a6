// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/fill_direction.hpp"

#include "core/simd/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace distzo2 {
namespace {

TEST(FillDirection, has_the_bits_of_the_vector_kernels) {
  const Kokkos::DefaultExecutionSpace exec;
  for (const auto kind : {DirectionKind::gaussian, DirectionKind::rademacher}) {
    const auto fill = kind == DirectionKind::gaussian ? simd_kernels().fill_gaussian : simd_kernels().fill_rademacher;
    for (const std::uint64_t first : {0ULL, 1ULL, 30ULL, 4099ULL, (1ULL << 34U) - 6, (1ULL << 39U) - 129}) {
      for (const std::size_t n : {0U, 1U, 3U, 4U, 130U, 5001U}) {
        const Kokkos::View<float*, Kokkos::DefaultExecutionSpace::memory_space> z("distzo2::test::z", n);
        fill_direction(exec, z, kind, 0xFEDCBA9876543210, 12, 2, first);
        exec.fence();
        const auto made = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), z);
        std::vector<float> expected(n);
        fill(expected.data(), 0xFEDCBA9876543210, 12, 2, first, n);
        for (std::size_t i = 0; i < n; ++i) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(made(i)), std::bit_cast<std::uint32_t>(expected[i]))
              << "first " << first << ", n " << n << ", i " << i;
        }
      }
    }
  }
}

TEST(FillDirection, leaves_the_rest_of_a_buffer_alone) {
  const Kokkos::DefaultExecutionSpace exec;
  const Kokkos::View<float*, Kokkos::DefaultExecutionSpace::memory_space> buffer("distzo2::test::buffer", 100);
  Kokkos::deep_copy(exec, buffer, 77.0F);
  fill_direction(exec, Kokkos::subview(buffer, std::make_pair(10, 53)), DirectionKind::gaussian, 1, 0, 1, 1002);
  exec.fence();
  const auto made = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), buffer);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(made(i) == 77.0F, i < 10 || i >= 53) << i;
  }
}

}  // namespace
}  // namespace distzo2
