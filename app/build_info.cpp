// SPDX-License-Identifier: BSD-3-Clause
#include "app/build_info.hpp"

#include "distzo2_version.hpp"
#include "parallel/nccl_gather.hpp"

#include <fmt/format.h>

#include <string_view>

namespace distzo2 {

std::string build_git_hash() {
  return git_hash;
}

bool built_for_device() {
  return std::string_view(kokkos_version).find("CUDA") != std::string_view::npos;  // "3.4.1 (CUDA, OPENMP)"
}

std::string build_summary() {
  return fmt::format(
      "distzo2 {} ({}, {})\n"
      "compiler        {}\n"
      "Kokkos          {}\n"
      "Kokkos Kernels  {}\n"
      "Teuchos         {}\n"
      "oneDNN          {}\n"
      "OpenBLAS        {}\n"
      "NCCL            {}\n",
      version_string, git_hash, build_type, compiler_version, kokkos_version, kokkos_kernels_version, teuchos_version,
      onednn_version, openblas_version, describe_nccl());
}

}  // namespace distzo2
