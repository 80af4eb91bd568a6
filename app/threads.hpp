// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace distzo2 {

/// The program's threads: what the deck asks for, else OMP_NUM_THREADS, else every core that the process may use, up to
/// max_host_threads, divided by the ranks that may use the same ones. Throws Error (usage) where OMP_NUM_THREADS counts
/// and is not from 1 to that, or OMP_THREAD_LIMIT allows fewer.
int thread_count(const std::optional<std::uint32_t>& wanted, int ranks_on_these_cores = 1);

/// Threads that a value of OMP_NUM_THREADS means ("4", or "4,2" for nested regions: the first counts); 0 where it is
/// not made of numbers from 1 to max_host_threads.
int threads_in(const char* omp_num_threads);

/// OMP_NUM_THREADS where it was taken out of the environment before libgomp read it, since `threads_in` has no number
/// for it; else null.
extern const char* refused_omp_num_threads;

/// Cores that the process may run on, up to max_host_threads.
int cores_of_process();

}  // namespace distzo2
