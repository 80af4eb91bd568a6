// SPDX-License-Identifier: BSD-3-Clause
#include "core/linear.hpp"

#include "core/log_prob_head.hpp"
#include "core/panels.hpp"
#include "core/round_up.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace distzo2 {
namespace {

constexpr int rows_of_w = 150;  // two full panels and a part
constexpr int cols_of_w = 72;
constexpr float epsilon = 1e-2F;

struct Matrix {
  Matrix(Storage storage, std::uint32_t round_every)
      : arena(make_kokkos_arena()),
        store(make_tensor_table({{{"w", rows_of_w, cols_of_w, true}, {"b", 1, rows_of_w, false}}}),
              UpdateRule{7, DirectionKind::gaussian, storage, Rounding::stochastic, round_every}, *arena) {
    std::mt19937 engine(3);
    std::normal_distribution<float> normal(0.0F, 0.5F);
    std::vector<float> values(rows_of_w * cols_of_w);
    for (float& v : values) v = normal(engine);
    store.import_values(0, 0, values);
  }
  std::unique_ptr<HostArena> arena;
  ParameterStore store;
};

StepRecord record(std::uint32_t t, float c) {
  return {t, 1e-3, 0.1F, {c}, {1.0}, {1.0}, {1.0, 1.0}};
}

Perturbation central(std::uint32_t t) {
  return {7, t, DirectionKind::gaussian, {{1, epsilon}, {1, -epsilon}}};
}

std::vector<float> random_rows(int rows, int features) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  const int padded = round_up(rows, row_tile);
  std::vector<float> values(static_cast<std::size_t>(2 * padded * features));
  for (float& v : values) v = normal(engine);
  return values;
}

Rows rows_over(std::vector<float>& memory, int tokens, int features) {
  const int padded = round_up(tokens, row_tile);
  return {memory.data(), 2, tokens, features, features, static_cast<std::int64_t>(padded) * features};
}

/// y of both evaluations, (2, tokens, rows_of_w) without padding.
std::vector<float> multiply(ParameterStore& store, const Perturbation& p, Compute compute, std::vector<float>& x_memory,
                            int tokens) {
  const HostExec exec;
  PanelScratch scratch(exec);
  std::vector<float> y_memory(static_cast<std::size_t>(2 * tokens * rows_of_w));
  const Rows y{y_memory.data(), 2, tokens, rows_of_w, rows_of_w, static_cast<std::int64_t>(tokens) * rows_of_w};
  linear(exec, {{y, store.weight(0)}}, rows_over(x_memory, tokens, cols_of_w), p, compute, scratch);
  store.absorbed(0);
  return y_memory;
}

TEST(Linear, equals_a_double_product_with_perturbed_weights) {
  Matrix m(Storage::fp32, 1);
  std::vector<float> theta(rows_of_w * cols_of_w), z(theta.size());
  m.store.read(0, 0, theta);
  const Perturbation p = central(5);
  fill_z(z.data(), p, 1, 0, std::ssize(z));
  constexpr int tokens = 70;
  std::vector<float> x = random_rows(tokens, cols_of_w);
  const std::vector<float> y = multiply(m.store, p, Compute::fp32, x, tokens);
  const Rows in = rows_over(x, tokens, cols_of_w);
  for (int e = 0; e < 2; ++e)
    for (int t = 0; t < tokens; ++t)
      for (int r = 0; r < rows_of_w; ++r) {
        double sum = 0;
        for (int c = 0; c < cols_of_w; ++c) {
          const auto i = static_cast<std::size_t>(r * cols_of_w + c);
          const double w = static_cast<double>(theta[i]) + (e == 0 ? 1.0 : -1.0) * static_cast<double>(epsilon) * z[i];
          sum += w * in.row(e, t)[c];
        }
        ASSERT_NEAR(y[static_cast<std::size_t>((e * tokens + t) * rows_of_w + r)], sum, 2e-5);
      }
}

TEST(Linear, gives_a_row_the_same_bits_wherever_it_stands) {
  for (const Compute compute : {Compute::fp32, Compute::bf16}) {
    Matrix m(Storage::fp32, 1);
    constexpr int many = 130;
    std::vector<float> x = random_rows(many, cols_of_w);
    const std::vector<float> together = multiply(m.store, central(2), compute, x, many);
    for (const int token : {0, 1, 63, 64, 127, 129}) {
      std::vector<float> alone = random_rows(1, cols_of_w);
      for (int e = 0; e < 2; ++e)
        std::copy_n(rows_over(x, many, cols_of_w).row(e, token), cols_of_w, rows_over(alone, 1, cols_of_w).row(e, 0));
      const std::vector<float> y = multiply(m.store, central(2), compute, alone, 1);
      for (int e = 0; e < 2; ++e)
        for (int r = 0; r < rows_of_w; ++r)
          ASSERT_EQ(y[static_cast<std::size_t>(e * rows_of_w + r)],
                    together[static_cast<std::size_t>((e * many + token) * rows_of_w + r)])
              << "token " << token << " row " << r;
    }
  }
}

TEST(Linear, applies_pending_records_in_its_pass_as_the_store_would_before) {
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16})
    for (const std::uint32_t round_every : {1U, 2U}) {
      Matrix deferred(storage, round_every), eager(storage, round_every);
      constexpr int tokens = 9;
      std::vector<float> x = random_rows(tokens, cols_of_w);
      for (std::uint32_t t = 0; t < 5; ++t) {
        const std::vector<float> a = multiply(deferred.store, central(t), Compute::fp32, x, tokens);
        eager.store.apply_pending();
        const std::vector<float> b = multiply(eager.store, central(t), Compute::fp32, x, tokens);
        ASSERT_EQ(a, b);
        deferred.store.append(record(t, -3e-3F));
        eager.store.append(record(t, -3e-3F));
        ASSERT_EQ(deferred.store.digest(), eager.store.digest());  // pending or stored: readers see one theta
      }
    }
}

TEST(Linear, leaves_theta_alone_without_records) {
  Matrix m(Storage::bf16, 1);
  std::vector<float> x = random_rows(3, cols_of_w);
  const std::uint64_t before = m.store.digest();
  multiply(m.store, central(0), Compute::bf16, x, 3);
  EXPECT_EQ(m.store.digest(), before);
}

TEST(Linear, bf16_products_differ_by_bf16_rounding_of_the_inputs_only) {
  Matrix m(Storage::fp32, 1);
  constexpr int tokens = 5;
  std::vector<float> x = random_rows(tokens, cols_of_w);
  const std::vector<float> exact = multiply(m.store, central(0), Compute::fp32, x, tokens);
  const std::vector<float> rounded = multiply(m.store, central(0), Compute::bf16, x, tokens);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(exact[i] - rounded[i]), 2);
    size += std::pow(static_cast<double>(exact[i]), 2);
  }
  const double relative = std::sqrt(difference / size);  // two roundings of 2^-9 rms/sqrt(3) each
  EXPECT_GT(relative, 5e-4);
  EXPECT_LT(relative, 5e-3);
}

TEST(Linear, in_fp16_multiplies_exactly_what_fp16_holds) {
  // One row of w and of x: 1 + 2^-11 is halfway to the next fp16 and goes to even, 3 + 2^-9 is held, as is 2^-24.
  auto arena = make_kokkos_arena();
  ParameterStore store(make_tensor_table({{{"w", 1, 3, true}}}), UpdateRule{}, *arena);
  store.import_values(0, 0, std::vector<float>{1.0F + 0x1p-11F, 3.0F + 0x1p-9F, 0x1p-24F});
  std::vector<float> x = random_rows(1, 3), memory(2);
  x[0] = 1.0F;
  x[1] = 2.0F + 0x1p-12F;
  x[2] = 0x1p+14F;
  const HostExec exec;
  PanelScratch scratch(exec);
  Rows in = rows_over(x, 1, 3);
  in.evaluations = 1;
  linear(exec, {{Rows{memory.data(), 1, 1, 1, 1, 1}, store.weight(0)}}, in, clean_perturbation(), Compute::fp16,
         scratch);
  EXPECT_EQ(memory[0], 1.0F + 2.0F * (3.0F + 0x1p-9F) + 0x1p-10F);
}

TEST(Linear, multiplies_several_matrices_as_it_would_each_alone_and_adds_where_asked) {
  constexpr int tokens = 21, other_rows = 70;
  for (const Compute compute : {Compute::fp32, Compute::bf16}) {
    auto arena = make_kokkos_arena();
    ParameterStore store(make_tensor_table({{{"w", rows_of_w, cols_of_w, true}, {"v", other_rows, cols_of_w, true}}}),
                         UpdateRule{}, *arena);
    std::vector<float> w = random_rows(rows_of_w, cols_of_w);
    store.import_values(0, 0, std::span(w).first(rows_of_w * cols_of_w));
    store.import_values(1, 0, std::span(w).last(other_rows * cols_of_w));
    std::vector<float> x = random_rows(tokens, cols_of_w);
    const Rows in = rows_over(x, tokens, cols_of_w);
    const std::vector<float> alone = multiply(store, central(4), compute, x, tokens);

    std::vector<float> y(2 * tokens * rows_of_w, 3.0F), v(2 * tokens * other_rows), bias(2 * rows_of_w);
    std::iota(bias.begin(), bias.end(), 0.5F);
    std::vector<float> v_alone = v;
    const auto rows = [](std::vector<float>& memory, int n) {
      return Rows{memory.data(), 2, tokens, n, n, static_cast<std::int64_t>(tokens) * n};
    };
    const HostExec exec;
    PanelScratch scratch(exec);
    linear(exec, {{rows(v_alone, other_rows), store.weight(1)}}, in, central(4), compute, scratch);
    linear(exec, {{rows(y, rows_of_w), store.weight(0), bias.data(), true}, {rows(v, other_rows), store.weight(1)}}, in,
           central(4), compute, scratch);
    EXPECT_EQ(v, v_alone);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t column = i / (tokens * rows_of_w) * rows_of_w + i % rows_of_w;
      ASSERT_EQ(y[i], 3.0F + (alone[i] + bias[column]));
    }
  }
}

TEST(Linear, takes_any_width_in_bf16) {
  constexpr int tokens = 3, rows = 9;
  for (const int cols : {1, 31, 33, 47, 98}) {
    auto arena = make_kokkos_arena();
    ParameterStore store(make_tensor_table({{{"w", rows, cols, true}}}), UpdateRule{}, *arena);
    std::vector<float> w(static_cast<std::size_t>(rows * cols));
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
    store.import_values(0, 0, w);
    std::vector<float> x = random_rows(tokens, cols);
    for (float& value : x) value = std::round(value * 4);  // exact in bf16, and so is every sum
    std::vector<float> memory(2 * tokens * rows);
    const Rows y{memory.data(), 1, tokens, rows, rows, tokens * rows};
    Rows in = rows_over(x, tokens, cols);
    in.evaluations = 1;
    const HostExec exec;
    PanelScratch scratch(exec);
    linear(exec, {{y, store.weight(0)}}, in, clean_perturbation(), Compute::bf16, scratch);
    for (int t = 0; t < tokens; ++t)
      for (int r = 0; r < rows; ++r) {
        float sum = 0;
        for (int c = 0; c < cols; ++c) sum += in.row(0, t)[c] * w[static_cast<std::size_t>(r * cols + c)];
        ASSERT_EQ(y.row(0, t)[r], sum) << cols << " columns, token " << t << ", row " << r;
      }
  }
}

void head_log_prob(const HostExec& exec, std::vector<double>& out, const Rows& x, std::span<const HeadTerm> terms,
                   const ParameterStore& store, PanelScratch& scratch, std::vector<std::int64_t> cuts = {}) {
  const Perturbation p = central(1);
  LogProbHead head(exec, x, terms, p, Compute::fp32, scratch);
  const Weight w = store.weight(0);
  cuts.push_back(w.rows);
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {
    head.add(rows_of(w, begin, end), begin);
    begin = end;
  }
  head.finish(out.data());
}

TEST(LogProbHead, gives_the_same_bits_however_the_matrix_is_cut) {
  Matrix m(Storage::fp32, 1);
  constexpr int rows = 5;
  std::vector<float> x = random_rows(rows, cols_of_w);
  const HostExec exec;
  PanelScratch scratch(exec);
  const std::vector<HeadTerm> terms{{4, 149}, {0, 3}, {1, 64}, {4, 63}};
  std::vector<double> whole(2 * terms.size()), cut(2 * terms.size());
  head_log_prob(exec, whole, rows_over(x, rows, cols_of_w), terms, m.store, scratch);
  head_log_prob(exec, cut, rows_over(x, rows, cols_of_w), terms, m.store, scratch, {64, 128});
  EXPECT_EQ(cut, whole);
}

TEST(LogProbHead, equals_a_double_softmax_of_the_logits) {
  Matrix m(Storage::fp32, 1);
  constexpr int terms = 37;
  std::vector<float> x = random_rows(terms, cols_of_w);
  const std::vector<float> logits = multiply(m.store, central(1), Compute::fp32, x, terms);
  std::vector<HeadTerm> targets(terms);
  for (int i = 0; i < terms; ++i) targets[static_cast<std::size_t>(i)] = {i, (i * 41) % rows_of_w};
  const HostExec exec;
  PanelScratch scratch(exec);
  std::vector<double> log_prob(2 * terms);
  head_log_prob(exec, log_prob, rows_over(x, terms, cols_of_w), targets, m.store, scratch);
  for (int i = 0; i < 2 * terms; ++i) {
    const float* row = logits.data() + i * rows_of_w;
    double sum = 0;
    for (int r = 0; r < rows_of_w; ++r) sum += std::exp(static_cast<double>(row[r]));
    const double expected =
        static_cast<double>(row[targets[static_cast<std::size_t>(i % terms)].target]) - std::log(sum);
    ASSERT_NEAR(log_prob[static_cast<std::size_t>(i)], expected, 1e-5);
  }
}

TEST(LogProbHead, gives_terms_that_share_a_row_the_bits_they_have_alone) {
  Matrix m(Storage::fp32, 1);
  constexpr int rows = 18;
  std::vector<float> x = random_rows(rows, cols_of_w);
  const HostExec exec;
  PanelScratch scratch(exec);
  const auto log_prob = [&](const std::vector<HeadTerm>& terms) {
    std::vector<double> values(2 * terms.size());
    head_log_prob(exec, values, rows_over(x, rows, cols_of_w), terms, m.store, scratch);
    return values;
  };
  const std::vector<double> together = log_prob({{17, 149}, {0, 3}, {17, 149}, {17, 0}});
  const std::vector<double> first = log_prob({{17, 149}}), second = log_prob({{0, 3}}), last = log_prob({{17, 0}});
  const std::vector<double> expected{first[0], second[0], first[0], last[0], first[1], second[1], first[1], last[1]};
  EXPECT_EQ(together, expected);
}

TEST(LookupRows, replays_pending_records_and_writes_nothing) {
  Matrix m(Storage::bf16, 1);
  m.store.append(record(0, 2e-2F));
  std::vector<float> theta(rows_of_w * cols_of_w);
  m.store.read(0, 0, theta);
  const std::vector<std::int32_t> ids{149, 0, 149};
  const HostExec exec;
  PanelScratch scratch(exec);
  std::vector<float> memory(3 * cols_of_w);
  const Rows out{memory.data(), 1, 3, cols_of_w, cols_of_w, 3 * cols_of_w};
  lookup_rows(exec, out, ids, m.store.weight(0), clean_perturbation(), false, scratch);
  EXPECT_EQ(m.store.weight(0).pending.size(), 1U);
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (int c = 0; c < cols_of_w; ++c)
      ASSERT_EQ(out.row(0, static_cast<int>(i))[c], theta[static_cast<std::size_t>(ids[i] * cols_of_w + c)]);
}

}  // namespace
}  // namespace distzo2
