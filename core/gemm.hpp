// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace distzo2 {

/// The shape of one host GEMM call: c (m, n) = a (m, k) * b (n, k)^T, a and c row-major, c contiguous. It depends on
/// the model only: rows of activations come in tiles of a fixed number, so a row's bits depend on nothing but the row.
/// b is packed (core/pack_weights.hpp), so that the library copies nothing: in fp32 as b^T (k, n); in bf16 as pairs of
/// words (k / 2, packed_bf16_rows), k filled up with zeros to a multiple of 32, and n at most packed_bf16_rows.
struct GemmShape {
  Compute compute = Compute::fp32;  // bf16: a and b hold bf16 values (see `native_bf16`)
  int m = 0, n = 0, k = 0;
  std::int64_t lda = 0;  // elements between rows of a
  auto operator<=>(const GemmShape&) const = default;
};

constexpr int packed_bf16_rows = 64;

/// A prepared single-threaded GEMM (design section 4): oneDNN, or KokkosBlas where DISTZO2_GEMM=kokkosblas.
class Gemm {
public:
  virtual ~Gemm() = default;
  /// b is packed; a and b are float, or bf16 words where the shape's compute is bf16. Threads with different `thread`
  /// may run at once.
  virtual void run(int thread, float* c, const void* a, const void* b) = 0;
  /// The library and what it chose for this shape and processor: "oneDNN brg:avx512_core", "KokkosBlas".
  virtual std::string name() const = 0;
};

/// Prepared once a shape and kept for the life of the process; call outside the step loop first (it compiles kernels).
Gemm& gemm_for(const GemmShape& shape);

/// After the parallel region whose threads ran GEMMs: throws Error (internal) where one of them failed.
void throw_if_a_gemm_failed();

/// Whether this processor multiplies bf16 inputs directly. Where not, `linear` rounds to bf16 and multiplies in fp32.
bool native_bf16();

/// Library and version of the GEMMs: "oneDNN 2.6.0", "KokkosBlas on Kokkos 30401, OpenBLAS 0.3.21 Haswell".
std::string gemm_library();

/// The same with the instruction set that oneDNN takes: a part of the arithmetic fingerprint.
std::string gemm_fingerprint();

}  // namespace distzo2
