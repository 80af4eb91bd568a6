// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace distzo2 {

/// Zeroed memory of the current device, seen by Kokkos Tools under this label. Throws Error (usage), with the key that
/// bounds it, where the device has no more. Waits for the device: not for the step loop.
std::shared_ptr<std::byte> device_bytes(const std::string& label, std::size_t bytes);

}  // namespace distzo2
