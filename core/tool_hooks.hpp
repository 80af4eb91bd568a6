// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace distzo2 {

// What a Kokkos Tools library that listens would not see, since it is not of Kokkos's own making.

/// Memory of a space as Kokkos names it ("Host", "Cuda", "CudaHostPinned"), and that it goes.
void tell_tool_of_memory(const char* space, const std::string& label, const void* memory, std::size_t bytes);
void tell_tool_of_release(const char* space, const std::string& label, const void* memory, std::size_t bytes) noexcept;

/// A loop on the host, while this lives.
class ToolKernel {
public:
  explicit ToolKernel(const std::string& label);
  ~ToolKernel();
  ToolKernel(const ToolKernel&) = delete;
  ToolKernel& operator=(const ToolKernel&) = delete;

private:
  std::uint64_t id_ = 0;
};

/// The memory of vectors that computing grows, seen as distzo2::scratch.
template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}

  T* allocate(std::size_t n) {
    T* const memory = std::allocator<T>().allocate(n);
    tell_tool_of_memory("Host", "distzo2::scratch", memory, n * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, std::size_t n) noexcept {
    tell_tool_of_release("Host", "distzo2::scratch", memory, n * sizeof(T));
    std::allocator<T>().deallocate(memory, n);
  }
  bool operator==(const ScratchAllocator&) const = default;
};
template <class T>
using ScratchVector = std::vector<T, ScratchAllocator<T>>;

}  // namespace distzo2
