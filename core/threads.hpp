// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Host threads that a process can have: the size of Kokkos' pool on OpenMP, which nothing there checks.
constexpr int max_host_threads = 512;

}  // namespace distzo2
