// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace distzo2 {

/// c (m, n) = a (m, k) * b (n, k)^T, or c += it. a and b are floats, bf16 or fp16 words as the GEMM's precision says, b
/// contiguous; c and the accumulation are fp32.
struct DeviceProduct {
  int m = 0, n = 0, k = 0;
  const std::byte* a = nullptr;
  std::int64_t lda = 0;  // elements between rows
  const std::byte* b = nullptr;
  float* c = nullptr;
  std::int64_t ldc = 0;
  bool add = false;
};

/// Products on a device, queued on its stream: cuBLAS in core/cuda.
class DeviceGemm {
public:
  virtual ~DeviceGemm() = default;
  virtual void run(const DeviceProduct& product) = 0;
  /// Library and version: a part of the arithmetic fingerprint.
  virtual std::string name() const = 0;
};

}  // namespace distzo2
