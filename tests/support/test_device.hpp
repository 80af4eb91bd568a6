// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/compute_memory.hpp"
#include "core/engine.hpp"

namespace distzo2 {

/// The device that this build's tests compute on: a GPU, or in a build for CPUs the host, with the device's code and a
/// memory of its own that it copies to and from. There is one.
ComputeMemory& test_device_memory();

/// An engine's device there.
inline EngineDevice test_device(const BatchShape& largest) {
  return {&test_device_memory(), nullptr, largest};
}

}  // namespace distzo2
