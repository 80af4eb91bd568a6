// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"

#include <cuda_runtime_api.h>

#include <memory>

namespace distzo2 {

/// The device's backend on a stream that outlives it: kernels of core/device, products of cuBLAS.
std::unique_ptr<Backend> make_cuda_backend(cudaStream_t stream, const BackendSetup& setup);

}  // namespace distzo2
