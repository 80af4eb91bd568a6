// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/cuda_backend.hpp"

#include "core/cuda/cublas_gemm.hpp"
#include "core/cuda/cuda_memory.hpp"
#include "core/cuda/space.hpp"
#include "core/device/device_backend.inl"

namespace distzo2 {

template class DeviceBackend<CudaSpace>;

std::unique_ptr<Backend> make_cuda_backend(cudaStream_t stream, const BackendSetup& setup) {
  return std::make_unique<DeviceBackend<CudaSpace>>(Kokkos::Cuda(stream), make_cublas_gemm(stream, setup.compute),
                                                    setup);
}

std::unique_ptr<Backend> CudaMemory::make_backend(const BackendSetup& setup) {
  return make_cuda_backend(compute_stream(), setup);
}

}  // namespace distzo2
