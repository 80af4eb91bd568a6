// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

namespace distzo2 {

/// Throws Error (internal) that names the call, the device and CUDA's words, where `code` is no success. An error of a
/// kernel or a copy shows at a later call: what is said then is "at or before".
void check_cuda(cudaError_t code, const char* call);

}  // namespace distzo2
