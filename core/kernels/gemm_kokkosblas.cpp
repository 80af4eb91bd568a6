// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/gemm_kokkosblas.hpp"

#include "core/exec.hpp"

#include <KokkosBlas3_gemm.hpp>

#include <utility>

namespace distzo2 {
namespace {

class KokkosBlasGemm final : public Gemm {
public:
  explicit KokkosBlasGemm(const GemmShape& shape) : shape_(shape) {}

  void run(int, float* c, const void* a, const void* b) override {
    // LayoutRight throughout: only then does KokkosBlas hand the call to the BLAS.
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;
    using ConstMatrix = Kokkos::View<const float**, Kokkos::LayoutRight, Kokkos::HostSpace, Unmanaged>;
    const ConstMatrix whole_a(static_cast<const float*>(a), shape_.m, shape_.lda);
    const ConstMatrix a_view = Kokkos::subview(whole_a, Kokkos::ALL, std::make_pair(0, shape_.k));
    const ConstMatrix b_view(static_cast<const float*>(b), shape_.k, shape_.n);
    const Matrix c_view(c, shape_.m, shape_.n);
    KokkosBlas::gemm("N", "N", 1.0F, a_view, b_view, 0.0F, c_view);
  }

  std::string name() const override { return "KokkosBlas"; }

private:
  GemmShape shape_;
};

}  // namespace

std::unique_ptr<Gemm> make_kokkosblas_gemm(const GemmShape& shape) {
  return std::make_unique<KokkosBlasGemm>(shape);
}

std::string kokkosblas_version() {
  return "Kokkos " + std::to_string(KOKKOS_VERSION);
}

int host_concurrency() {
  return HostExec().concurrency();
}

}  // namespace distzo2
