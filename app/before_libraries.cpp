// SPDX-License-Identifier: BSD-3-Clause
// Compiled for any x86-64 processor, as it runs before the check of the processor.
#include "app/threads.hpp"

#include "core/error.hpp"
#include "core/threads.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

// What runs before the constructors of shared libraries must not lean on them, nor be instrumented.
#define DISTZO2_BEFORE_LIBRARIES __attribute__((no_sanitize("address", "undefined")))

namespace distzo2 {

const char* refused_omp_num_threads = nullptr;

DISTZO2_BEFORE_LIBRARIES int cores_of_process() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return cores < 1 ? 1 : cores > max_host_threads ? max_host_threads : cores;
}

DISTZO2_BEFORE_LIBRARIES int threads_in(const char* text) {
  int first = 0;
  for (bool more = true; more;) {
    while (*text == ' ') ++text;
    int value = 0;
    for (; *text >= '0' && *text <= '9' && value <= max_host_threads; ++text) value = 10 * value + (*text - '0');
    if (value < 1 || value > max_host_threads) return 0;
    if (first == 0) first = value;
    while (*text == ' ') ++text;
    more = *text == ',';
    if (more) ++text;
  }
  return *text == '\0' ? first : 0;
}

namespace {

/// Address space that the libraries' constructors take, OpenBLAS's buffers above all (128 MiB a thread): it tries again
/// without end where there is none.
constexpr std::size_t start_bytes = std::size_t{128} << 20;
constexpr std::size_t thread_bytes = std::size_t{144} << 20;

/// The loader calls this before any library's constructor. libgomp's prints a line of its own about a value that it
/// cannot read, so such a value is taken away and refused later, where it counts.
DISTZO2_BEFORE_LIBRARIES void before_libraries(int, char**, char** environment) {
  constexpr const char* name = "OMP_NUM_THREADS=";
  int threads = cores_of_process();
  char** kept = environment;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    std::size_t i = 0;
    while (name[i] != '\0' && (*entry)[i] == name[i]) ++i;
    const bool named = name[i] == '\0';
    const int value = named ? threads_in(*entry + i) : 0;
    if (value > 0) threads = value;
    if (named && value == 0)
      refused_omp_num_threads = *entry + i;
    else
      *kept++ = *entry;
  }
  *kept = nullptr;
  const std::size_t bytes = start_bytes + static_cast<std::size_t>(threads) * thread_bytes;
  void* space = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space != MAP_FAILED) {
    ::munmap(space, bytes);
    return;
  }
  constexpr char message[] =
      "distzo2: not enough memory to start: the address space is limited (see ulimit -v); fewer threads "
      "(OMP_NUM_THREADS) take less\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message, sizeof(message) - 1);
  ::_exit(static_cast<int>(ExitCode::internal));
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries_entry)(int, char**, char**) = before_libraries;

}  // namespace
}  // namespace distzo2
