// SPDX-License-Identifier: BSD-3-Clause
// What DISTZO2_GEMM and DISTZO2_ISA ask for is what multiplies: run four times, see tests/CMakeLists.txt.
#include "core/gemm.hpp"
#include "core/kernels/gemm_kokkosblas.hpp"
#include "core/pack_weights.hpp"
#include "core/simd/kernels.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

std::string asked(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// Long and odd: libraries cut and sum such a product in orders of their own.
constexpr GemmShape awkward{Compute::fp32, 16, 61, 4099, 4099};

std::vector<float> product(Gemm& gemm) {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  std::vector<float> a(awkward.m * awkward.k), b(awkward.n * awkward.k), c(awkward.m * awkward.n);
  for (float& v : a) v = normal(engine);
  for (float& v : b) v = normal(engine);
  std::vector<float> packed(packed_floats(awkward));
  pack_weights(awkward, packed.data(), b.data());
  gemm.run(0, c.data(), a.data(), packed.data());
  return c;
}

TEST(GemmChoice, is_named_by_the_gemm_and_by_the_fingerprint) {
  const std::string name = gemm_for(awkward).name();
  if (asked("DISTZO2_GEMM") == "kokkosblas") {
    EXPECT_EQ(name, "KokkosBlas");
    EXPECT_TRUE(gemm_fingerprint().starts_with("KokkosBlas"));
    EXPECT_FALSE(native_bf16());
  } else {
    EXPECT_TRUE(name.starts_with("oneDNN "));
    EXPECT_TRUE(gemm_fingerprint().starts_with("oneDNN "));
  }
  EXPECT_TRUE(gemm_fingerprint().starts_with(gemm_library()));
  EXPECT_EQ(gemm_library().find(" isa "), std::string::npos) << gemm_library();
  if (asked("DISTZO2_ISA") == "avx2") {
    EXPECT_EQ(name.find("avx512"), std::string::npos) << name;
    EXPECT_STREQ(simd_kernels().name, "avx2");
    EXPECT_FALSE(native_bf16());
  } else if (simd_kernels_avx512() != nullptr && asked("DISTZO2_GEMM").empty()) {
    EXPECT_NE(name.find("avx512"), std::string::npos) << name;
  }
}

TEST(GemmChoice, names_the_kernels_that_openblas_took) {
  void* const symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename");
  if (symbol == nullptr) return;  // another BLAS
  const std::string core = reinterpret_cast<char* (*)()>(symbol)();
  EXPECT_TRUE(kokkosblas_version().ends_with(" " + core)) << kokkosblas_version();
  if (!asked("OPENBLAS_CORETYPE").empty()) {
    EXPECT_EQ(core, asked("OPENBLAS_CORETYPE"));
  }
}

TEST(GemmChoice, shows_in_the_bits_of_a_long_product) {
  const std::vector<float> chosen = product(gemm_for(awkward));
  const std::vector<float> by_kokkosblas = product(*make_kokkosblas_gemm(awkward));
  if (asked("DISTZO2_GEMM") == "kokkosblas")
    EXPECT_EQ(chosen, by_kokkosblas);
  else
    EXPECT_NE(chosen, by_kokkosblas);
}

}  // namespace
}  // namespace distzo2
