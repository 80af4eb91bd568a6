// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/gemm.hpp"

#include <cuda_runtime_api.h>

#include <memory>

namespace distzo2 {

/// cuBLAS on a stream, with a handle and a workspace (core/device_memory.hpp) of its own: no call allocates or waits,
/// and equal shapes give equal bits. Inputs in `compute`, sums always in fp32 (no TF32, no 16-bit partial sums).
std::unique_ptr<DeviceGemm> make_cublas_gemm(cudaStream_t stream, Compute compute);

}  // namespace distzo2
