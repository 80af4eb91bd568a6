// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Calls of the CUDA runtime from this program's own code and Kokkos' since the process began, counted between the
/// caller and the library (the linker's --wrap). In a build for CPUs: what the device's code asks of its Space.
struct HostCalls {
  int waits = 0;        // cudaDeviceSynchronize, cudaStreamSynchronize, cudaEventSynchronize, cudaMemcpy
  int allocations = 0;  // cudaMalloc, cudaFree, cudaMallocHost, cudaHostRegister
};
HostCalls host_calls();

}  // namespace distzo2
