// SPDX-License-Identifier: BSD-3-Clause
#include "core/compute_memory.hpp"

namespace distzo2 {

// A program for CPUs; core/cuda holds the other form.

std::optional<DeviceInfo> device_info() {
  return std::nullopt;
}

int device_count() {
  return 0;
}

void use_device(int) {}

DeviceLink device_link(const std::string&) {
  return DeviceLink::unseen;
}

std::unique_ptr<ComputeMemory> make_device_memory() {
  return nullptr;
}

}  // namespace distzo2
