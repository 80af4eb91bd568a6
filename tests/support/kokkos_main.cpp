// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // A list is read by ctest, which would take Kokkos' warnings for names of tests.
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  Kokkos::ScopeGuard const guard(argc, argv);
  return RUN_ALL_TESTS();
}
