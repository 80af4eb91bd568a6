// SPDX-License-Identifier: BSD-3-Clause
#include "app/threads.hpp"

#include "core/error.hpp"
#include "core/threads.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace distzo2 {

int thread_count(const std::optional<std::uint32_t>& wanted) {
  if (wanted) return static_cast<int>(*wanted);
  if (refused_omp_num_threads != nullptr && *refused_omp_num_threads != '\0')
    throw Error(ExitCode::usage, fmt::format("OMP_NUM_THREADS: \"{}\" is no number of threads; accepted: an integer "
                                             "from 1 to {}",
                                             refused_omp_num_threads, max_host_threads));
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int threads = variable == nullptr ? 0 : threads_in(variable);
  return threads > 0 ? threads : cores_of_process();
}

}  // namespace distzo2
