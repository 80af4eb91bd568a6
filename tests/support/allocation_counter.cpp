// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/allocation_counter.hpp"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<std::uint64_t> calls{0}, live{0}, peak{0};

}  // namespace

namespace distzo2 {

AllocationCounts allocation_counts() {
  return {calls.load(), live.load(), peak.load()};
}

void reset_allocation_peak() {
  calls = 0;
  peak = live.load();
}

}  // namespace distzo2

#ifndef __SANITIZE_ADDRESS__

// What glibc exports for those who replace malloc.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* p);
}

namespace {

void* counted(void* p) {
  if (p == nullptr) return p;
  calls.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t bytes = malloc_usable_size(p);
  const std::uint64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  for (std::uint64_t most = peak.load(std::memory_order_relaxed);
       most < now && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed);) {
  }
  return p;
}

void gone(void* p) {
  if (p != nullptr) live.fetch_sub(malloc_usable_size(p), std::memory_order_relaxed);
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  return counted(__libc_malloc(bytes));
}
void* calloc(std::size_t count, std::size_t bytes) {
  return counted(__libc_calloc(count, bytes));
}
void* realloc(void* old, std::size_t bytes) {
  const std::uint64_t before = old == nullptr ? 0 : malloc_usable_size(old);
  void* const p = __libc_realloc(old, bytes);
  if (p != nullptr || bytes == 0) live.fetch_sub(before, std::memory_order_relaxed);
  return counted(p);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  *p = counted(__libc_memalign(alignment, bytes));
  return *p == nullptr ? ENOMEM : 0;
}
void free(void* p) {
  gone(p);
  __libc_free(p);
}
}

#endif
