// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/test_device.hpp"

namespace distzo2 {

ComputeMemory& test_device_memory() {
  static const std::unique_ptr<ComputeMemory> device = make_device_memory();
  return *device;
}

}  // namespace distzo2
