// SPDX-License-Identifier: BSD-3-Clause
// The device's row kernels against the host's: sums in another order, exponentials of another library.
#include "core/device/head.hpp"
#include "core/device/rows.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/norm.hpp"
#include "core/kernels/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace distzo2 {
namespace {

constexpr int rows_evaluations = 2, input_rows = 5, features = 48;
const HostExec host_exec;

std::vector<float> some_values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.3F, 2.0F);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

Rows over(std::vector<float>& memory, int row_count = input_rows) {
  return {memory.data(), rows_evaluations, row_count, features, features, row_count * features};
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(static_cast<double>(b[i])))) << i;
}

TEST(DeviceRows, are_those_of_the_host) {
  const std::vector<float> x = some_values(rows_evaluations * input_rows * features, 1);
  const std::vector<float> weight = some_values(rows_evaluations * features, 2),
                           bias = some_values(rows_evaluations * features, 3);
  const std::vector<std::int32_t> positions{0, 1, 7, 2, 200}, picked{4, 0, 0, 3};
  RopeTable rope;
  rope.reserve({}, 16, 201);
  using Change = std::function<void(std::vector<float>&)>;
  const auto check = [&](const char* name, const Change& host, const Change& device) {
    SCOPED_TRACE(name);
    std::vector<float> expected = x, made = x;
    host(expected);
    device(made);
    expect_near(made, expected, 2e-6);
    EXPECT_NE(expected, x);
  };
  check(
      "rms norm", [&](auto& m) { rms_norm(host_exec, over(m), over(m), weight.data(), features, 1e-5); },
      [&](auto& m) { rms_norm_rows<HostSpace>(host_exec, over(m), over(m), weight.data(), features, 1e-5); });
  check(
      "rms norm of heads", [&](auto& m) { rms_norm(host_exec, over(m), over(m), weight.data(), 16, 1e-5); },
      [&](auto& m) { rms_norm_rows<HostSpace>(host_exec, over(m), over(m), weight.data(), 16, 1e-5); });
  check(
      "layer norm", [&](auto& m) { layer_norm(host_exec, over(m), over(m), weight.data(), bias.data(), 1e-5); },
      [&](auto& m) { layer_norm_rows<HostSpace>(host_exec, over(m), over(m), weight.data(), bias.data(), 1e-5); });
  check(
      "layer norm alone", [&](auto& m) { layer_norm(host_exec, over(m), over(m), nullptr, nullptr, 1e-5); },
      [&](auto& m) { layer_norm_rows<HostSpace>(host_exec, over(m), over(m), nullptr, nullptr, 1e-5); });
  check(
      "rotary embedding", [&](auto& m) { rotate(host_exec, over(m), 16, positions, rope); },
      [&](auto& m) { rotate_rows<HostSpace>(host_exec, over(m), 8, positions.data(), rope.at(0)); });
  check(
      "silu", [&](auto& m) { silu_multiply(host_exec, over(m).columns(0, 20), over(m).columns(20, 20)); },
      [&](auto& m) { silu_multiply_rows<HostSpace>(host_exec, over(m).columns(0, 20), over(m).columns(20, 20)); });
  check(
      "relu", [&](auto& m) { relu(host_exec, over(m)); }, [&](auto& m) { relu_rows<HostSpace>(host_exec, over(m)); });
  std::vector<float> in = x;
  check(
      "rows picked", [&](auto& m) { gather_rows(host_exec, over(m, 4), over(in), std::span<const int>(picked)); },
      [&](auto& m) { gather_rows_of<HostSpace>(host_exec, over(m, 4), over(in), picked.data()); });
}

TEST(DeviceRows, add_a_bias_and_round_as_by_hand) {
  std::vector<float> x(rows_evaluations * input_rows * features, 1.0F + 0x1p-9F),
      bias(rows_evaluations * features, 2.0F);
  bias[features + 1] = 4.0F;  // of the second evaluation
  add_bias_rows<HostSpace>(host_exec, over(x), bias.data());
  EXPECT_EQ(x[1], 3.0F + 0x1p-9F);
  EXPECT_EQ(over(x).row(1, 2)[1], 5.0F + 0x1p-9F);
  constexpr int padded = 8;
  std::vector<std::uint16_t> rounded(rows_evaluations * padded * features, 77);
  const auto round = [&](Compute compute) {
    round_rows<HostSpace>(host_exec, reinterpret_cast<std::byte*>(rounded.data()), over(x), compute, padded);
    return rounded[(padded + 2) * features + 1];
  };
  EXPECT_EQ(round(Compute::bf16), 0x40A0);  // 5
  EXPECT_EQ(round(Compute::fp16), 0x4500);  // 5, half of its unit 2^-8 goes to even
  EXPECT_EQ(rounded[(padded - 1) * features], 77);
}

TEST(DeviceHead, runs_a_softmax_on_over_ranges_of_the_vocabulary) {
  // Two rows, one evaluation, five entries in two ranges; the second row has two terms, the first has one.
  constexpr int rows = 2, terms = 3, entries = 5;
  const float logits[rows][entries] = {{0.0F, 1.0F, -2.0F, 5.0F, 0.5F}, {3.0F, 3.0F, 90.0F, 1.0F, 89.0F}};
  double largest[rows], sum[rows], target_logit[terms], log_prob[terms];
  const std::int32_t begin[] = {0, 1, 3}, term_of_row[] = {1, 0, 2}, target[] = {4, 3, 0}, row_of_term[] = {1, 0, 1};
  const HeadState head{largest, sum, target_logit, log_prob, begin, term_of_row, target, row_of_term, 1, rows, terms};
  start_softmax<HostSpace>(host_exec, head);
  for (const int first : {0, 2}) {
    const int n = first == 0 ? 2 : 3;
    for (int row = 0; row < rows; ++row)
      add_logits<HostSpace>(host_exec, head, &logits[row][first], 0, row, 1, first, n);
  }
  finish_softmax<HostSpace>(host_exec, head);
  for (int i = 0; i < terms; ++i) {
    const float* const row = logits[row_of_term[i]];
    double all = 0;
    for (int j = 0; j < entries; ++j) all += std::exp(static_cast<double>(row[j]));
    EXPECT_NEAR(log_prob[i], static_cast<double>(row[target[i]]) - std::log(all), 1e-6) << i;
  }
}

}  // namespace
}  // namespace distzo2
