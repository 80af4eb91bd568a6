// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace distzo2 {

/// The vectorised inner loops, one table an instruction set. All tables give equal bits: each entry is the same source
/// (simd/kernels.inl) compiled with other flags, using only IEEE add, mul, fma, sqrt and integer operations.
struct SimdKernels {
  const char* name;  // "avx2", "avx512"

  /// z[0..n) = z(t, k) at global indices first .. first + n (design section 2). Any first and n.
  void (*fill_gaussian)(float* z, std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first,
                        std::size_t n);
  void (*fill_rademacher)(float* z, std::uint64_t seed, std::uint32_t t, std::uint32_t k, std::uint64_t first,
                          std::size_t n);

  /// out[0..n) = the normals of stream 3 (random weights) at global indices first .. first + n.
  void (*fill_weights)(float* out, std::uint64_t seed, std::uint64_t first, std::size_t n);

  /// out[i] = fma(scale, z[i], theta[i]).
  void (*perturb)(float* out, const float* theta, const float* z, float scale, std::size_t n);
  /// out[i] = bf16(fma(scale, z[i], theta[i])), to nearest even.
  void (*perturb_bf16)(std::uint16_t* out, const float* theta, const float* z, float scale, std::size_t n);
  /// out[i] = bf16(x[i]), to nearest even.
  void (*to_bf16)(std::uint16_t* out, const float* x, std::size_t n);

  /// theta[i] = d * theta[i]; theta[i] = fma(c, z[i], theta[i]).
  void (*scale)(float* theta, float d, std::size_t n);
  void (*add_scaled)(float* theta, const float* z, float c, std::size_t n);
  /// theta[i] = fma(c, z[i], theta[i]) of a Rademacher z(t, k), which is not made; c is not 0.
  void (*add_rademacher)(float* theta, float c, std::uint64_t seed, std::uint32_t t, std::uint32_t k,
                         std::uint64_t first, std::size_t n);

  /// Storage to float (exact) and float to storage: to nearest even, or stochastically with the words of stream 1 at
  /// step t for global indices first .. first + n.
  void (*load_16)(float* out, const std::uint16_t* in, Storage storage, std::size_t n);
  void (*store_nearest)(std::uint16_t* out, const float* in, Storage storage, std::size_t n);
  void (*store_stochastic)(std::uint16_t* out, const float* in, Storage storage, std::uint64_t seed, std::uint32_t t,
                           std::uint64_t first, std::size_t n);
};

/// The table chosen at start: the best the processor has, or what DISTZO2_ISA names ("avx2", "avx512"); an instruction
/// set that the processor lacks or that does not exist is an Error (usage).
const SimdKernels& simd_kernels();
const SimdKernels& find_simd_kernels(std::string_view name);  // as if DISTZO2_ISA were `name`; "" for the best
const SimdKernels& simd_kernels_avx2();
const SimdKernels* simd_kernels_avx512();  // null where the processor lacks it

}  // namespace distzo2
