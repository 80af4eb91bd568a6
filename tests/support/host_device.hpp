// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"
#include "core/device/gemm.hpp"
#include "core/precision.hpp"

#include <memory>

namespace distzo2 {

/// Products as loops: one chain of fp32 fma over k an element.
std::unique_ptr<DeviceGemm> make_loop_gemm(Compute compute);

/// The device's code, all of it, on the host's threads and memory.
std::unique_ptr<Backend> make_host_device_backend(const BackendSetup& setup);

}  // namespace distzo2
