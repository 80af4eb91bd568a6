// SPDX-License-Identifier: BSD-3-Clause
// A Kokkos Tools library: at the end it writes how often each label of a kernel, an allocation, a copy or a fence was
// seen to the file that DISTZO2_TEST_TOOL_OUTPUT names, "kernel 12 distzo2::linear" a line.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace {

std::mutex mutex;
std::map<std::pair<std::string, std::string>, std::uint64_t> counts;

void count(const char* kind, const char* label) {
  const std::lock_guard lock(mutex);
  ++counts[{kind, label}];
}

}  // namespace

struct SpaceHandle {
  char name[64];
};

extern "C" {
void kokkosp_init_library(int, std::uint64_t, std::uint32_t, void*) {}
void kokkosp_finalize_library() {
  std::ofstream out(std::getenv("DISTZO2_TEST_TOOL_OUTPUT"));
  for (const auto& [seen, times] : counts) out << seen.first << ' ' << times << ' ' << seen.second << '\n';
}
void kokkosp_begin_parallel_for(const char* label, std::uint32_t, std::uint64_t*) {
  count("kernel", label);
}
void kokkosp_begin_parallel_reduce(const char* label, std::uint32_t, std::uint64_t*) {
  count("kernel", label);
}
void kokkosp_begin_parallel_scan(const char* label, std::uint32_t, std::uint64_t*) {
  count("kernel", label);
}
void kokkosp_allocate_data(SpaceHandle, const char* label, const void*, std::uint64_t) {
  count("allocation", label);
}
void kokkosp_begin_deep_copy(SpaceHandle, const char* label, const void*, SpaceHandle, const char*, const void*,
                             std::uint64_t) {
  count("copy", label);
}
void kokkosp_begin_fence(const char* label, std::uint32_t, std::uint64_t*) {
  count("fence", label);
}
}
