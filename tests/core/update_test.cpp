// SPDX-License-Identifier: BSD-3-Clause
#include "core/update.hpp"

#include "core/float16.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace distzo2 {
namespace {

StepRecord record(std::uint32_t t, double lr, float wd, std::vector<float> c) {
  StepRecord r;
  r.t = t;
  r.lr = lr;
  r.wd = wd;
  r.c = std::move(c);
  return r;
}

// A skipped step, one direction, decay, c = 0 among others.
std::vector<StepRecord> some_records() {
  return {record(4, 1e-4, 0.1F, {1.5e-3F, 0.0F, -2e-4F}), record(5, 1e-4, 0.0F, {0.0F, 0.0F, 0.0F}),
          record(6, 5e-5, 0.0F, {-7e-4F, 1e-5F, 3e-3F}), record(7, 5e-5, 0.3F, {1e-2F, 0.0F, 0.0F}),
          record(8, 5e-5, 0.3F, {0.0F, 1e-6F, 0.0F})};
}

std::vector<float> some_weights(std::size_t n) {
  std::mt19937 source(1);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> theta(n);
  for (auto& x : theta) {
    x = normal(source);
  }
  return theta;
}

// Section 1 of the design, one element at a time.
float reference(float theta, std::uint64_t i, bool matrix, const UpdateRule& rule,
                const std::vector<StepRecord>& records) {
  for (const auto& r : records) {
    const auto d = static_cast<float>(1.0 - r.lr * static_cast<double>(r.wd));
    if (matrix && r.wd != 0.0F) {
      theta = d * theta;
    }
    for (std::uint32_t k = 1; k <= r.c.size(); ++k) {
      if (r.c[k - 1] != 0.0F) {
        const float z = rule.kind == DirectionKind::gaussian ? gaussian_at(rule.seed, r.t, Stream::direction, k, i)
                                                             : rademacher_at(rule.seed, r.t, k, i);
        theta = std::fma(r.c[k - 1], z, theta);
      }
    }
    if (matrix && rule.storage != Storage::fp32 && (r.t + 1) % rule.round_every == 0) {
      const auto word = random_word(rule.seed, i, r.t, Stream::rounding, 0);
      const bool stochastic = rule.rounding == Rounding::stochastic;
      if (rule.storage == Storage::bf16) {
        theta = Bfloat16::to_float(stochastic ? Bfloat16::stochastic(theta, word) : Bfloat16::nearest(theta));
      } else {
        theta = Float16::to_float(stochastic ? Float16::stochastic(theta, word) : Float16::nearest(theta));
      }
    }
  }
  return theta;
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void apply(std::vector<float>& theta, std::uint64_t first, bool matrix, const UpdateRule& rule,
           const std::vector<StepRecord>& records) {
  std::vector<float> scratch(theta.size());
  apply_records(theta.data(), first, theta.size(), matrix, rule, records, scratch.data());
}

TEST(Update, has_the_bits_of_the_equations) {
  constexpr std::uint64_t first = (1ULL << 34U) - 1500;
  const auto start = some_weights(2500);
  for (const auto kind : {DirectionKind::gaussian, DirectionKind::rademacher}) {
    for (const auto storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
      for (const auto rounding : {Rounding::stochastic, Rounding::nearest}) {
        for (const std::uint32_t every : {1U, 3U}) {
          for (const bool matrix : {true, false}) {
            const UpdateRule rule{0, kind, storage, rounding, every};
            auto theta = start;
            apply(theta, first, matrix, rule, some_records());
            auto expected = start;
            for (std::size_t i = 0; i < expected.size(); ++i) {
              expected[i] = reference(start[i], first + i, matrix, rule, some_records());
            }
            ASSERT_TRUE(same_floats(theta, expected));
          }
        }
      }
    }
  }
}

TEST(Update, by_hand) {
  // d = 1 - 0.5 * 0.5 = 0.75; c = 2 with a sign of plus or minus one.
  std::vector<float> theta = {8.0F, 8.0F};
  const UpdateRule rule{3, DirectionKind::rademacher, Storage::fp32, Rounding::stochastic, 1};
  apply(theta, 64, true, rule, {record(0, 0.5, 0.5F, {2.0F})});
  EXPECT_EQ(theta[0], 6.0F + 2.0F * rademacher_at(3, 0, 1, 64));
  EXPECT_EQ(theta[1], 6.0F + 2.0F * rademacher_at(3, 0, 1, 65));
  std::vector<float> bias = {8.0F};
  apply(bias, 64, false, rule, {record(0, 0.5, 0.5F, {2.0F})});
  EXPECT_EQ(bias[0], 8.0F + 2.0F * rademacher_at(3, 0, 1, 64));
}

TEST(Update, of_slices_and_of_parts_of_the_records_is_that_of_the_whole) {
  const UpdateRule rule{77, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 2};
  auto whole = some_weights(5000);
  auto sliced = whole;
  apply(whole, 1003, true, rule, some_records());
  std::vector<float> scratch(sliced.size());
  const auto records = some_records();
  for (std::size_t begin = 0; begin < sliced.size();) {
    const std::size_t n = std::min<std::size_t>(sliced.size() - begin, 1 + begin / 3);
    apply_records(sliced.data() + begin, 1003 + begin, n, true, rule, std::span(records).first(2), scratch.data());
    apply_records(sliced.data() + begin, 1003 + begin, n, true, rule, std::span(records).subspan(2), scratch.data());
    begin += n;
  }
  EXPECT_TRUE(same_floats(whole, sliced));
}

TEST(Update, with_a_learning_rate_of_zero_changes_no_bit) {
  std::vector<StepRecord> records;
  for (std::uint32_t t = 0; t < 1000; ++t) {
    records.push_back(record(t, 0.0, 0.1F, {0.0F, -0.0F}));
  }
  auto stored = some_weights(3000);
  stored[0] = 0x1.8p-130F;  // a subnormal that bf16 holds
  stored[1] = -0.0F;
  for (auto& x : stored) {
    x = Bfloat16::to_float(Bfloat16::nearest(x));
  }
  auto theta = stored;
  apply(theta, 12, true, {5, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1}, records);
  EXPECT_TRUE(same_floats(theta, stored));
  const auto full = some_weights(3000);
  theta = full;
  apply(theta, 12, true, {5, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1}, records);
  EXPECT_TRUE(same_floats(theta, full));
}

TEST(Update, that_is_far_below_a_unit_of_bf16_is_realised_in_the_mean) {
  // 200 steps of 2 % of a unit towards zero: nearest loses all of them, stochastic rounding none on average.
  constexpr std::size_t n = 4000;
  std::vector<StepRecord> records;
  for (std::uint32_t t = 0; t < 200; ++t) {
    records.push_back(record(t, 1e-3, 1e-1F, {}));  // d = 1 - 1e-4
  }
  std::vector<float> stochastic(n, 0.015625F * 1.5F), nearest = stochastic;
  const double expected = 0.015625 * 1.5 * std::pow(1.0 - 1e-4, 200);
  apply(stochastic, 0, true, {1, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1}, records);
  apply(nearest, 0, true, {1, DirectionKind::gaussian, Storage::bf16, Rounding::nearest, 1}, records);
  double mean = 0.0;
  for (const float x : stochastic) {
    mean += static_cast<double>(x) / n;
  }
  // A step rounds with probabilities 0.02 and 0.98: a deviation below a quarter of the unit 2^-13, summed over 200
  // steps.
  const double sigma = 0.25 * 0x1p-13 * std::sqrt(200.0 / n);
  EXPECT_NEAR(mean, expected, 4 * sigma);
  EXPECT_EQ(nearest[0], 0.015625F * 1.5F);
}

}  // namespace
}  // namespace distzo2
