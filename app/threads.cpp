// SPDX-License-Identifier: BSD-3-Clause
#include "app/threads.hpp"

#include "core/error.hpp"
#include "core/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace distzo2 {

namespace {

/// `threads`, which `name` asks for, where OMP_THREAD_LIMIT allows that many.
int allowed(int threads, const char* name) {
  const char* limit = std::getenv("OMP_THREAD_LIMIT");  // a number of at most 9 digits, or it were not there
  if (limit != nullptr && std::atoi(limit) < threads)
    throw Error(ExitCode::usage, fmt::format("OMP_THREAD_LIMIT: {} is fewer than the {} threads of {}; accepted: as "
                                             "many and more, or none",
                                             limit, threads, name));
  return threads;
}

}  // namespace

int thread_count(const std::optional<std::uint32_t>& wanted, int ranks_on_these_cores) {
  if (wanted) return allowed(static_cast<int>(*wanted), "parallel/threads");
  if (refused_omp_num_threads != nullptr && *refused_omp_num_threads != '\0')
    throw Error(ExitCode::usage, fmt::format("OMP_NUM_THREADS: \"{}\" is no number of threads; accepted: an integer "
                                             "from 1 to {}",
                                             refused_omp_num_threads, max_host_threads));
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int threads = variable == nullptr ? 0 : threads_in(variable);
  if (threads > 0) return allowed(threads, "OMP_NUM_THREADS");
  return allowed(std::max(1, cores_of_process() / ranks_on_these_cores),
                 "this machine; OMP_NUM_THREADS can ask for fewer");
}

}  // namespace distzo2
