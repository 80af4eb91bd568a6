// SPDX-License-Identifier: BSD-3-Clause
#include "core/error.hpp"
#include "core/simd/kernels.hpp"

#include <cstdlib>
#include <string>

namespace distzo2 {

extern const SimdKernels simd_table_avx512;  // avx512.cpp

const SimdKernels* simd_kernels_avx512() {
  __builtin_cpu_init();
  const bool present = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return present ? &simd_table_avx512 : nullptr;
}

const SimdKernels& find_simd_kernels(std::string_view name) {
  if (name == "avx2") {
    return simd_kernels_avx2();
  }
  if (!name.empty() && name != "avx512") {
    throw Error(ExitCode::usage, "DISTZO2_ISA: \"" + std::string(name) + "\" is not known; accepted: avx2, avx512");
  }
  if (const SimdKernels* best = simd_kernels_avx512()) {
    return *best;
  }
  if (!name.empty()) {
    throw Error(ExitCode::usage, "DISTZO2_ISA: this processor has no avx512 (F, BW, DQ, VL); accepted: avx2");
  }
  return simd_kernels_avx2();
}

const SimdKernels& simd_kernels() {
  static const SimdKernels& chosen = []() -> const SimdKernels& {
    const char* forced = std::getenv("DISTZO2_ISA");
    return find_simd_kernels(forced == nullptr ? "" : forced);
  }();
  return chosen;
}

}  // namespace distzo2
