// SPDX-License-Identifier: BSD-3-Clause
#include "core/tool_hooks.hpp"

#include <Kokkos_Core.hpp>

namespace distzo2 {

void tell_tool_of_memory(const char* space, const std::string& label, const void* memory, std::size_t bytes) {
  Kokkos::Tools::allocateData(Kokkos::Tools::make_space_handle(space), label, memory, bytes);
}

void tell_tool_of_release(const char* space, const std::string& label, const void* memory, std::size_t bytes) noexcept {
  Kokkos::Tools::deallocateData(Kokkos::Tools::make_space_handle(space), label, memory, bytes);
}

ToolKernel::ToolKernel(const std::string& label) {
  Kokkos::Tools::beginParallelFor(label, 0, &id_);
}

ToolKernel::~ToolKernel() {
  Kokkos::Tools::endParallelFor(id_);
}

}  // namespace distzo2
