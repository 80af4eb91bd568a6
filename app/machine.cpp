// SPDX-License-Identifier: BSD-3-Clause
#include "app/machine.hpp"

#include "core/gemm.hpp"
#include "core/kokkos_scope.hpp"
#include "core/simd/kernels.hpp"

#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <thread>

namespace distzo2 {

nlohmann::ordered_json machine_object() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string processor;
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; processor.empty() && std::getline(in, line);)
    if (constexpr std::string_view key = "model name"; line.starts_with(key))
      processor = line.substr(line.find(':') + 2);
  struct sysinfo info = {};
  const std::uint64_t memory = ::sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
  nlohmann::ordered_json machine{
      {"host", host.data()},           {"processor", processor}, {"cores", std::thread::hardware_concurrency()},
      {"threads", host_concurrency()}, {"memory_bytes", memory}, {"instruction_set", simd_kernels().name}};
  if (const std::optional<DeviceInfo> device = device_info()) machine["device"] = device_object(*device);
  return machine;
}

nlohmann::ordered_json device_object(const DeviceInfo& device) {
  return {{"name", device.name},
          {"bus_id", device.bus_id},
          {"driver_cuda", device.driver_cuda},
          {"compute_capability", device.compute_capability},
          {"free_bytes", device.free_bytes},
          {"total_bytes", device.total_bytes}};
}

std::string describe_compute(Compute compute) {
  if (const std::optional<DeviceInfo> device = device_info())
    return fmt::format("{}, {}, compute capability {}, a driver for CUDA {}", name_of(compute), device->name,
                       device->compute_capability, device->driver_cuda);
  return fmt::format("{}, {} thread{}, instruction set {}, GEMM {}", name_of(compute), host_concurrency(),
                     host_concurrency() == 1 ? "" : "s", simd_kernels().name, gemm_library());
}

}  // namespace distzo2
