// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/cuda_memory.hpp"
#include "core/error.hpp"

#include <array>

namespace distzo2 {
namespace {

std::string bus_of(int device) {
  std::array<char, 32> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device), "cudaDeviceGetPCIBusId");
  return text.data();
}

}  // namespace

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
  std::string id;
  for (const char byte : properties.uuid.bytes) {
    constexpr const char* digits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    id += {digits[value / 16], digits[value % 16]};
  }
  return DeviceInfo{properties.name,
                    dotted(properties.major, properties.minor),
                    dotted(driver / 1000, driver % 1000 / 10),
                    bus_of(device),
                    id,
                    free,
                    total};
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

void use_device(int device) {
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
}

DeviceLink device_link(const std::string& bus_id) {
  int device = 0, other = 0, reaches = 0, atomics = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  if (bus_id == bus_of(device)) return DeviceLink::same;
  if (cudaDeviceGetByPCIBusId(&other, bus_id.c_str()) != cudaSuccess) {  // hidden from this process
    static_cast<void>(cudaGetLastError());
    return DeviceLink::unseen;
  }
  check_cuda(cudaDeviceCanAccessPeer(&reaches, device, other), "cudaDeviceCanAccessPeer");
  if (reaches == 0) return DeviceLink::host;
  // Of the two ways, NVLink alone carries atomic operations of the devices' own.
  check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device, other),
             "cudaDeviceGetP2PAttribute");
  return atomics != 0 ? DeviceLink::nvlink : DeviceLink::pcie;
}

std::unique_ptr<ComputeMemory> make_device_memory() {
  return std::make_unique<CudaMemory>();
}

}  // namespace distzo2
