// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/cuda/check.hpp"
#include "core/cuda/device_bytes.hpp"
#include "core/tool_hooks.hpp"

#include <cuda_runtime_api.h>
#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace distzo2 {

/// The Space of CUDA (core/device/space.hpp). Exec is a Kokkos instance on a stream of ours.
struct CudaSpace {
  using Exec = Kokkos::Cuda;
  using Memory = Kokkos::CudaSpace;
  static constexpr int team_threads = 128;

  static std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) {
    return device_bytes(label, bytes);
  }
  static std::shared_ptr<std::byte> allocate_host(const std::string& label, std::size_t bytes) {
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, bytes), ("cudaMallocHost of " + label).c_str());
    tell_tool_of_memory("CudaHostPinned", label, memory, bytes);
    return {static_cast<std::byte*>(memory), [label, bytes](std::byte* p) {
              tell_tool_of_release("CudaHostPinned", label, p, bytes);
              cudaFreeHost(p);
            }};
  }
  static void copy(const Exec& exec, void* to, const void* from, std::size_t bytes) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, exec.cuda_stream()), "cudaMemcpyAsync");
  }
  static void wait(const Exec& exec) { check_cuda(cudaStreamSynchronize(exec.cuda_stream()), "cudaStreamSynchronize"); }
};

}  // namespace distzo2
