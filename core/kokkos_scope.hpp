// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

namespace distzo2 {

/// Kokkos up for the life of this object, on so many host threads (1 to max_host_threads) and on this device where
/// there are any (-1: the first), without warnings on stderr.
class KokkosScope {
public:
  explicit KokkosScope(int threads, int device = -1);
  ~KokkosScope();
  KokkosScope(const KokkosScope&) = delete;
  KokkosScope& operator=(const KokkosScope&) = delete;

private:
  struct Up;
  std::unique_ptr<Up> up_;
};

/// Host threads that Kokkos is up on: as many kernels' bodies, and so GEMM calls, run at once.
int host_concurrency();

}  // namespace distzo2
