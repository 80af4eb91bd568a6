// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/cuda_memory.hpp"
#include "core/error.hpp"

namespace distzo2 {

// What a program for CPUs answers in core/no_device.cpp.

std::optional<DeviceInfo> device_info() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    throw Error(ExitCode::usage, std::string("this program is built for NVIDIA GPUs and finds none: ") +
                                     (code != cudaSuccess ? cudaGetErrorString(code) : "no device is visible") +
                                     "; nvidia-smi says whether driver and GPU are there; the preset release builds a "
                                     "program for CPUs");
  }
  int device = 0, driver = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  const auto dotted = [](int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); };
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return DeviceInfo{properties.name, dotted(properties.major, properties.minor),
                    dotted(driver / 1000, driver % 1000 / 10), free, total};
}

std::unique_ptr<ComputeMemory> make_device_memory() {
  return std::make_unique<CudaMemory>();
}

}  // namespace distzo2
