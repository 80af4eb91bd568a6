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

/// What follows `name` in an environment's entry, null where the entry does not begin with it.
DISTZO2_BEFORE_LIBRARIES const char* after(const char* entry, const char* name) {
  for (; *name != '\0'; ++name, ++entry)
    if (*entry != *name) return nullptr;
  return entry;
}

DISTZO2_BEFORE_LIBRARIES bool is_count(const char* text) {
  int digits = 0;
  for (; *text >= '0' && *text <= '9'; ++text) ++digits;
  return *text == '\0' && digits > 0 && digits < 10;
}

/// Whether the text is a word, or words with commas between them, out of a list that ends with null.
DISTZO2_BEFORE_LIBRARIES bool is_of(const char* text, const char* const* words) {
  for (;;) {
    const char* rest = nullptr;
    for (const char* const* word = words; *word != nullptr && rest == nullptr; ++word) {
      rest = after(text, *word);
      if (rest != nullptr && *rest != '\0' && *rest != ',') rest = nullptr;
    }
    if (rest == nullptr || *rest == '\0') return rest != nullptr;
    text = rest + 1;
  }
}

/// Whether the libraries may see a variable. Of those that tune OpenMP, only what says where threads run and how they
/// wait, in values that libgomp surely knows: the others can break what the program relies on (a number of threads that
/// changes by itself, no parallel regions, a second opinion of Kokkos), and libgomp prints a line of its own about
/// values that it cannot read. Of Kokkos' own, only the names of its tools.
DISTZO2_BEFORE_LIBRARIES bool is_for_libraries(const char* entry) {
  static constexpr const char* binds[] = {"true", "TRUE", "false", "FALSE", "close", "spread", "master", nullptr};
  static constexpr const char* places[] = {"threads", "cores", "sockets", nullptr};
  static constexpr const char* waits[] = {"active", "ACTIVE", "passive", "PASSIVE", nullptr};
  if (const char* value = after(entry, "OMP_THREAD_LIMIT=")) return is_count(value);
  if (const char* value = after(entry, "OMP_PROC_BIND=")) return is_of(value, binds);
  if (const char* value = after(entry, "OMP_PLACES=")) return is_of(value, places);
  if (const char* value = after(entry, "OMP_WAIT_POLICY=")) return is_of(value, waits);
  if (const char* value = after(entry, "GOMP_SPINCOUNT=")) return is_count(value);
  if (after(entry, "OMP_NUM_THREADS=") != nullptr) return true;  // looked at by itself, as are the names of tools
  if (after(entry, "KOKKOS_TOOLS_LIBS=") != nullptr || after(entry, "KOKKOS_PROFILE_LIBRARY=") != nullptr) return true;
  return after(entry, "OMP_") == nullptr && after(entry, "GOMP_") == nullptr && after(entry, "KOKKOS_") == nullptr;
}

/// The loader calls this before any library's constructor: what the libraries must not see goes from the environment.
/// A bad number of threads is refused later, where it counts.
DISTZO2_BEFORE_LIBRARIES void before_libraries(int, char**, char** environment) {
  int threads = cores_of_process();
  char** kept = environment;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    if (!is_for_libraries(*entry)) continue;
    const char* const wanted = after(*entry, "OMP_NUM_THREADS=");
    const int value = wanted == nullptr ? 0 : threads_in(wanted);
    if (value > 0) threads = value;
    if (wanted != nullptr && value == 0)
      refused_omp_num_threads = wanted;
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
  static constexpr char fewer[] =
      "distzo2: not enough memory to start: the address space is limited (see ulimit -v); fewer threads "
      "(OMP_NUM_THREADS) take less\n";
  static constexpr char least[] =
      "distzo2: not enough memory to start: the address space is limited (see ulimit -v); one thread needs about 430 "
      "MB "
      "besides the model\n";
  [[maybe_unused]] const ssize_t written =
      threads > 1 ? ::write(STDERR_FILENO, fewer, sizeof(fewer) - 1) : ::write(STDERR_FILENO, least, sizeof(least) - 1);
  ::_exit(static_cast<int>(ExitCode::internal));
}

[[gnu::section(".preinit_array"), gnu::used]] void (*before_libraries_entry)(int, char**, char**) = before_libraries;

}  // namespace
}  // namespace distzo2
