// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/gemm.hpp"

#include <memory>
#include <string>

namespace distzo2 {

// What the host GEMMs need of Kokkos, apart from oneDNN: nvcc, which compiles the sources that include Kokkos in a CUDA
// build, cannot read oneDNN's header.

/// KokkosBlas (so the BLAS it was built on) behind the GEMM seam; fp32 only.
std::unique_ptr<Gemm> make_kokkosblas_gemm(const GemmShape& shape);

/// "Kokkos 30401, OpenBLAS 0.3.21 Haswell", Kokkos as it numbers its versions, OpenBLAS with its kernels where it is
/// the BLAS: a part of the arithmetic fingerprint.
std::string kokkosblas_version();

}  // namespace distzo2
