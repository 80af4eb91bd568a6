// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/cublas_gemm.hpp"

#include "core/cuda/check.hpp"
#include "core/device_memory.hpp"
#include "core/error.hpp"

#include <cublas_v2.h>

#include <string>

namespace distzo2 {
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ExitCode::internal, std::string(call) + ": " + cublasGetStatusString(status));
}

cudaDataType_t type_of(Compute compute) {
  return compute == Compute::fp32 ? CUDA_R_32F : compute == Compute::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

class CublasGemm final : public DeviceGemm {
public:
  CublasGemm(cudaStream_t stream, Compute compute) : type_(type_of(compute)) {
    check_cublas(cublasCreate(&handle_), "cublasCreate");
    check_cuda(cudaMalloc(&workspace_, device_gemm_workspace_bytes), "cudaMalloc of the GEMM workspace");
    check_cublas(cublasSetStream(handle_, stream), "cublasSetStream");  // takes the workspace away: it comes after
    check_cublas(cublasSetWorkspace(handle_, workspace_, device_gemm_workspace_bytes), "cublasSetWorkspace");
    const int mode = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    check_cublas(cublasSetMathMode(handle_, static_cast<cublasMath_t>(mode)), "cublasSetMathMode");
    check_cublas(cublasSetAtomicsMode(handle_, CUBLAS_ATOMICS_NOT_ALLOWED), "cublasSetAtomicsMode");
  }
  ~CublasGemm() override {
    cublasDestroy(handle_);
    cudaFree(workspace_);
  }
  CublasGemm(const CublasGemm&) = delete;
  CublasGemm& operator=(const CublasGemm&) = delete;

  void run(const DeviceProduct& p) override {
    // Row-major c = a b^T is column-major c^T = b a^T, of b^T as it lies there, transposed.
    const float one = 1.0F, beta = p.add ? 1.0F : 0.0F;
    check_cublas(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, p.n, p.m, p.k, &one, p.b, type_, p.k, p.a, type_,
                              static_cast<int>(p.lda), &beta, p.c, CUDA_R_32F, static_cast<int>(p.ldc),
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  }

  std::string name() const override {
    int version = 0, device = 0, major = 0, minor = 0;
    check_cublas(cublasGetVersion(handle_, &version), "cublasGetVersion");
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
    return "cuBLAS " + std::to_string(version) + " sm_" + std::to_string(major) + std::to_string(minor);
  }

private:
  cudaDataType_t type_;
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceGemm> make_cublas_gemm(cudaStream_t stream, Compute compute) {
  return std::make_unique<CublasGemm>(stream, compute);
}

}  // namespace distzo2
