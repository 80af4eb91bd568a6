// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/check.hpp"

#include "core/error.hpp"

#include <string>

namespace distzo2 {
namespace {

std::string device_name() {
  int device = -1;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess) return "no device";
  // After an error that sticks not even the name is told.
  const bool named = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  return (named ? std::string(properties.name) + " (" : std::string("(")) + "device " + std::to_string(device) + ")";
}

}  // namespace

void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // one that does not stick is not reported twice
  throw Error(ExitCode::internal, "at or before " + std::string(call) + " on " + device_name() + ": " +
                                      cudaGetErrorName(code) + ": " + cudaGetErrorString(code));
}

}  // namespace distzo2
