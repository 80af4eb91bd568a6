// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/host_waits.hpp"

#include <cuda_runtime_api.h>

#include <atomic>

namespace {

std::atomic<int> waits{0}, allocations{0};

}  // namespace

// `--wrap=f` makes every call of f one of __wrap_f, and __real_f the library's.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
cudaError_t __real_cudaDeviceSynchronize();
cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __real_cudaEventSynchronize(cudaEvent_t event);
cudaError_t __real_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t __real_cudaMalloc(void** memory, size_t bytes);
cudaError_t __real_cudaFree(void* memory);
cudaError_t __real_cudaMallocHost(void** memory, size_t bytes);
cudaError_t __real_cudaHostRegister(void* memory, size_t bytes, unsigned flags);

cudaError_t __wrap_cudaDeviceSynchronize() {
  ++waits;
  return __real_cudaDeviceSynchronize();
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  return __real_cudaStreamSynchronize(stream);
}
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t event) {
  ++waits;
  return __real_cudaEventSynchronize(event);
}
cudaError_t __wrap_cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  ++waits;
  return __real_cudaMemcpy(to, from, bytes, kind);
}
cudaError_t __wrap_cudaMalloc(void** memory, size_t bytes) {
  ++allocations;
  return __real_cudaMalloc(memory, bytes);
}
cudaError_t __wrap_cudaFree(void* memory) {
  ++allocations;
  return __real_cudaFree(memory);
}
cudaError_t __wrap_cudaMallocHost(void** memory, size_t bytes) {
  ++allocations;
  return __real_cudaMallocHost(memory, bytes);
}
cudaError_t __wrap_cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  ++allocations;
  return __real_cudaHostRegister(memory, bytes, flags);
}
// NOLINTEND(bugprone-reserved-identifier)
}

namespace distzo2 {

HostCalls host_calls() {
  return {waits.load(), allocations.load()};
}

}  // namespace distzo2
