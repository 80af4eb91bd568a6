// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/compute_memory.hpp"
#include "core/precision.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace distzo2 {

/// Host, processor, cores and memory of this machine, as results name it; in a program for GPUs the GPU too.
nlohmann::ordered_json machine_object();

/// Name, capability, driver and memory of a GPU.
nlohmann::ordered_json device_object(const DeviceInfo& device);

/// What this process computes with: "fp32, 2 threads, instruction set avx512, GEMM oneDNN 3.7.1"; in a program for GPUs
/// "fp16, NVIDIA H200, compute capability 9.0, a driver for CUDA 13.0".
std::string describe_compute(Compute compute);

}  // namespace distzo2
