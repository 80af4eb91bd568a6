// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/gemm_kokkosblas.hpp"

#include "core/exec.hpp"
#include "core/kokkos_scope.hpp"

#include <KokkosBlas3_gemm.hpp>

#include <cstddef>
#include <utility>
#include <vector>

// There where the BLAS is OpenBLAS, which takes kernels for the processor, or for the core that OPENBLAS_CORETYPE
// names, whatever DISTZO2_ISA says.
extern "C" {
char* openblas_get_config() __attribute__((weak));
char* openblas_get_corename() __attribute__((weak));
}

namespace distzo2 {
namespace {

class KokkosBlasGemm final : public Gemm {
public:
  explicit KokkosBlasGemm(const GemmShape& shape)
      : shape_(shape), of_thread_(static_cast<std::size_t>(host_concurrency())) {
    for (std::vector<float>& c : of_thread_)
      c.resize(static_cast<std::size_t>(shape.n) * static_cast<std::size_t>(shape.m));
  }

  void run(int thread, float* c, const void* a, const void* b) override {
    // LayoutRight throughout: only then does KokkosBlas hand the call to the BLAS.
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;
    using ConstMatrix = Kokkos::View<const float**, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;
    const ConstMatrix whole_a(static_cast<const float*>(a), shape_.m, shape_.lda);
    const ConstMatrix a_view = Kokkos::subview(whole_a, Kokkos::ALL, std::make_pair(0, shape_.k));
    const ConstMatrix b_view(static_cast<const float*>(b), shape_.k, shape_.n);
    // c^T = b^T a^T, so that rows of activations lie along the vectors of the BLAS: its kernels for AVX2 add in another
    // order in the last columns of an odd number of blocks, and a row's bits would depend on its place in the tile.
    float* const turned = of_thread_[static_cast<std::size_t>(thread)].data();
    const Matrix c_view(turned, shape_.n, shape_.m);
    KokkosBlas::gemm("T", "T", 1.0F, b_view, a_view, 0.0F, c_view);
    for (int row = 0; row < shape_.m; ++row)
      for (int column = 0; column < shape_.n; ++column) c[row * shape_.n + column] = turned[column * shape_.m + row];
  }

  std::string name() const override { return "KokkosBlas"; }

private:
  GemmShape shape_;
  std::vector<std::vector<float>> of_thread_;  // c^T
};

}  // namespace

std::unique_ptr<Gemm> make_kokkosblas_gemm(const GemmShape& shape) {
  return std::make_unique<KokkosBlasGemm>(shape);
}

std::string kokkosblas_version() {
  const std::string version = "Kokkos " + std::to_string(KOKKOS_VERSION);
  if (openblas_get_config == nullptr || openblas_get_corename == nullptr) return version;
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
  return version + ", " + config.substr(0, config.find(' ', config.find(' ') + 1)) + ' ' + openblas_get_corename();
}

}  // namespace distzo2
