// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/device_bytes.hpp"

#include "core/cuda/check.hpp"
#include "core/error.hpp"
#include "core/tool_hooks.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

namespace distzo2 {

std::shared_ptr<std::byte> device_bytes(const std::string& label, std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    throw Error(ExitCode::usage, "memory/device budget: the device has " + std::to_string(free >> 20) +
                                     " MiB left, and " + label + " asks for " + std::to_string((bytes >> 20) + 1) +
                                     " MiB; a smaller budget streams more of the model");
  }
  check_cuda(code, "cudaMalloc");
  tell_tool_of_memory("Cuda", label, memory, bytes);
  std::shared_ptr<std::byte> owner(static_cast<std::byte*>(memory), [label, bytes](std::byte* p) {
    tell_tool_of_release("Cuda", label, p, bytes);
    cudaFree(p);
  });
  check_cuda(cudaMemset(memory, 0, bytes), "cudaMemset");
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");  // our streams do not wait for it
  return owner;
}

}  // namespace distzo2
