// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/machine.hpp"
#include "app/progress.hpp"
#include "core/compute_memory.hpp"
#include "io/json_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace distzo2 {

ExitCode device_command(const DeviceOptions& options) {
  const DeviceInfo device = device_info().value();
  if (options.json)
    fmt::print("{}\n", json_text(device_object(device)));
  else
    fmt::print("{} at {}, compute capability {}, a driver for CUDA {}: {} free of {}\n", device.name, device.bus_id,
               device.compute_capability, device.driver_cuda, bytes_text(device.free_bytes),
               bytes_text(device.total_bytes));
  return ExitCode::done;
}

}  // namespace distzo2
