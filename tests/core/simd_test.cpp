// SPDX-License-Identifier: BSD-3-Clause
#include "core/simd/kernels.hpp"

#include "core/error.hpp"
#include "core/float16.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

// Every table that this processor can run, against the scalar functions.
std::vector<const SimdKernels*> tables() {
  std::vector<const SimdKernels*> found = {&simd_kernels_avx2()};
  if (simd_kernels_avx512() != nullptr) {
    found.push_back(simd_kernels_avx512());
  }
  return found;
}

constexpr std::uint64_t firsts[] = {
    0, 1, 2, 3, 29, 31, 127, 4096 - 5, (1ULL << 32U) - 7, (1ULL << 34U) - 70, (1ULL << 34U) + 9, (1ULL << 39U) - 100};
constexpr std::size_t lengths[] = {0, 1, 3, 4, 31, 32, 33, 100, 513, 1500};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Fills between two guards with `fill(out, first, n)` and compares with `expected(index)`.
template <class T, class Fill, class Expected>
void expect_fills(Fill fill, Expected expected) {
  for (const auto first : firsts) {
    for (const auto n : lengths) {
      const T guard = static_cast<T>(77);
      std::vector<T> made(n + 64, guard);
      std::vector<T> wanted(n + 64, guard);
      for (std::size_t i = 0; i < n; ++i) {
        wanted[32 + i] = expected(first + i);
      }
      fill(made.data() + 32, first, n);
      ASSERT_TRUE(same_bits(made, wanted)) << "first " << first << ", n " << n;
    }
  }
}

// Ordinary values and all that is special: zeros, subnormals, halfway cases, the largest, infinities, NaN.
std::vector<float> samples(std::size_t n) {
  std::mt19937 source(5);
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::uint32_t>(source());
    x[i] = i % 3 == 0 ? ScalarLanes::from_bits(bits)
                      : std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), -36);
  }
  const float special[] = {0.0F,
                           -0.0F,
                           1.0F,
                           1.00390625F,
                           1.01171875F,
                           65504.0F,
                           65519.0F,
                           65520.0F,
                           -65536.0F,
                           0x1p-24F,
                           0x1p-25F,
                           0x1.8p-25F,
                           0x1p-14F,
                           0x1.ffep-15F,
                           0x1p-140F,
                           std::numeric_limits<float>::max(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t i = 0; i < std::size(special) && i < n; ++i) {
    x[n - 1 - i] = special[i];
  }
  return x;
}

TEST(Simd, gaussian_rows_have_the_bits_of_the_scalar_function) {
  constexpr std::uint64_t seed = 0x0123456789abcdef;
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    expect_fills<float>(
        [&](float* z, std::uint64_t first, std::size_t n) { kernels->fill_gaussian(z, seed, 11, 3, first, n); },
        [&](std::uint64_t i) { return gaussian_at(seed, 11, Stream::direction, 3, i); });
  }
}

TEST(Simd, rademacher_rows_have_the_bits_of_the_scalar_function) {
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    expect_fills<float>(
        [&](float* z, std::uint64_t first, std::size_t n) { kernels->fill_rademacher(z, 6, 11, 3, first, n); },
        [&](std::uint64_t i) { return rademacher_at(6, 11, 3, i); });
  }
}

TEST(Simd, all_normals_of_a_long_run_agree_between_instruction_sets) {
  constexpr std::size_t n = 1 << 20;
  std::vector<float> a(n), b(n);
  for (std::uint32_t t = 0; t < 4; ++t) {
    simd_kernels_avx2().fill_gaussian(a.data(), t, t, 1, n * t, n);
    tables().back()->fill_gaussian(b.data(), t, t, 1, n * t, n);
    ASSERT_TRUE(same_bits(a, b));
  }
}

TEST(Simd, the_normals_of_this_generator_version_are_fixed_for_good) {
  // Hash of 65,536 normals across index 2^34 as made by scalar code of GCC and Clang, with and without the processor's
  // fma. A change here is another generator_version.
  EXPECT_EQ(generator_version, 1U);
  constexpr std::size_t n = 65536;
  for (const auto* kernels : tables()) {
    std::vector<float> z(n);
    kernels->fill_gaussian(z.data(), 0x123456789ABCDEF0, 17, 3, (1ULL << 34U) - n / 2, n);
    EXPECT_EQ(z[0], 0x1.c79302p-4F);
    EXPECT_EQ(z[1], -0x1.d835c4p-2F);
    EXPECT_EQ(z[2], -0x1.39c63p+0F);
    EXPECT_EQ(z[3], -0x1.ac7ee2p-2F);
    EXPECT_EQ(XXH3_64bits(z.data(), n * sizeof(float)), 0xDF71A56E64C5F410ULL) << kernels->name;
  }
}

TEST(Simd, stochastic_rounding_takes_the_word_of_its_index) {
  const auto x = samples(4096);
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    for (const auto storage : {Storage::bf16, Storage::fp16}) {
      expect_fills<std::uint16_t>(
          [&](std::uint16_t* out, std::uint64_t first, std::size_t n) {
            std::vector<float> in(n);
            for (std::size_t i = 0; i < n; ++i) {
              in[i] = x[(first + i) % x.size()];
            }
            kernels->store_stochastic(out, in.data(), storage, 21, 9, first, n);
          },
          [&](std::uint64_t i) {
            const auto word = random_word(21, i, 9, Stream::rounding, 0);
            const float value = x[i % x.size()];
            return storage == Storage::bf16 ? Bfloat16::stochastic(value, word) : Float16::stochastic(value, word);
          });
    }
  }
}

TEST(Simd, conversions_have_the_bits_of_the_scalar_functions) {
  const auto x = samples(5003);
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    std::vector<std::uint16_t> bf16(x.size()), fp16(x.size()), direct(x.size()), expected_bf16(x.size()),
        expected_fp16(x.size());
    kernels->store_nearest(bf16.data(), x.data(), Storage::bf16, x.size());
    kernels->store_nearest(fp16.data(), x.data(), Storage::fp16, x.size());
    kernels->to_bf16(direct.data(), x.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected_bf16[i] = Bfloat16::nearest(x[i]);
      expected_fp16[i] = Float16::nearest(x[i]);
    }
    EXPECT_TRUE(same_bits(bf16, expected_bf16));
    EXPECT_TRUE(same_bits(direct, expected_bf16));
    EXPECT_TRUE(same_bits(fp16, expected_fp16));

    std::vector<float> from_bf16(bits.size()), from_fp16(bits.size()), wide_bf16(bits.size()), wide_fp16(bits.size());
    kernels->load_16(from_bf16.data(), bits.data(), Storage::bf16, bits.size());
    kernels->load_16(from_fp16.data(), bits.data(), Storage::fp16, bits.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      wide_bf16[i] = Bfloat16::to_float(bits[i]);
      wide_fp16[i] = Float16::to_float(bits[i]);
    }
    EXPECT_TRUE(same_bits(from_bf16, wide_bf16));
    EXPECT_TRUE(same_bits(from_fp16, wide_fp16));
  }
}

TEST(Simd, linear_kernels_round_once) {
  std::mt19937 source(8);
  std::normal_distribution<float> normal;
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    for (const std::size_t n : {0U, 1U, 7U, 16U, 33U, 1001U}) {
      std::vector<float> theta(n), z(n), perturbed(n), expected(n), scaled(n);
      std::vector<std::uint16_t> low(n), expected_low(n);
      for (std::size_t i = 0; i < n; ++i) {
        theta[i] = 0.02F * normal(source);
        z[i] = normal(source);
        expected[i] = std::fma(1e-3F, z[i], theta[i]);
        expected_low[i] = Bfloat16::nearest(expected[i]);
        scaled[i] = 0.999F * theta[i];
      }
      kernels->perturb(perturbed.data(), theta.data(), z.data(), 1e-3F, n);
      kernels->perturb_bf16(low.data(), theta.data(), z.data(), 1e-3F, n);
      EXPECT_TRUE(same_bits(perturbed, expected));
      EXPECT_TRUE(same_bits(low, expected_low));
      auto updated = theta;
      kernels->add_scaled(updated.data(), z.data(), 1e-3F, n);
      EXPECT_TRUE(same_bits(updated, expected));
      kernels->scale(theta.data(), 0.999F, n);
      EXPECT_TRUE(same_bits(theta, scaled));
    }
  }
}

TEST(Simd, adding_a_rademacher_direction_is_fma_with_its_signs) {
  for (const auto* kernels : tables()) {
    SCOPED_TRACE(kernels->name);
    for (const float c : {1e-3F, -3e-9F, 0x1p-149F, 2e38F}) {
      for (const auto first : firsts) {
        for (const auto n : lengths) {
          std::vector<float> theta = samples(n), expected = theta;
          for (std::size_t i = 0; i < n; ++i) expected[i] = std::fma(c, rademacher_at(6, 11, 3, first + i), theta[i]);
          kernels->add_rademacher(theta.data(), c, 6, 11, 3, first, n);
          ASSERT_TRUE(same_bits(theta, expected)) << "c " << c << ", first " << first << ", n " << n;
        }
      }
    }
  }
}

TEST(Simd, keeps_subnormals) {
  for (const auto* kernels : tables()) {
    std::vector<float> theta(16, 0x1p-140F), z(16, 0x1p-130F);
    kernels->add_scaled(theta.data(), z.data(), 0x1p-10F, theta.size());
    EXPECT_EQ(theta[5], 0x1p-139F);
  }
}

TEST(Simd, an_instruction_set_is_chosen_by_name) {
  EXPECT_STREQ(find_simd_kernels("avx2").name, "avx2");
  EXPECT_EQ(&find_simd_kernels(""), tables().back());
  try {
    find_simd_kernels("sse9");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("sse9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("avx2, avx512"), std::string::npos);
  }
}

}  // namespace
}  // namespace distzo2
