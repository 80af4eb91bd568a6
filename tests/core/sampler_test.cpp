// SPDX-License-Identifier: BSD-3-Clause
#include "core/sampler.hpp"

#include "core/error.hpp"
#include "test_paths.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <string>

namespace distzo2 {
namespace {

std::vector<std::uint32_t> sorted(std::vector<std::uint32_t> x) {
  std::sort(x.begin(), x.end());
  return x;
}

std::vector<std::uint32_t> identity(std::uint32_t n) {
  std::vector<std::uint32_t> x(n);
  std::iota(x.begin(), x.end(), 0U);
  return x;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Sampler, permutes_as_the_reference_in_python) {
  std::ifstream in(test_paths::sources / "tests/golden/sampler.txt");
  std::string line;
  int cases = 0;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::uint64_t seed = 0;
    std::uint32_t epoch = 0;
    std::uint32_t n = 0;
    fields >> seed >> epoch >> n;
    std::vector<std::uint32_t> expected(n);
    for (auto& e : expected) {
      fields >> e;
    }
    ASSERT_TRUE(fields);
    EXPECT_EQ(keyed_permutation(seed, epoch, n), expected) << line;
    ++cases;
  }
  EXPECT_EQ(cases, 6);
}

TEST(Sampler, draws_every_example_once_an_epoch_though_batches_cross_epochs) {
  constexpr std::uint32_t examples = 10;
  Sampler sampler(7, 4, examples);
  std::vector<std::uint32_t> all;
  for (std::uint32_t t = 0; t < 5; ++t) {  // 20 draws: two epochs, the third batch lies in both
    const auto batch = sampler.indices(t);
    ASSERT_EQ(batch.size(), 4U);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  const std::vector<std::uint32_t> first(all.begin(), all.begin() + 10);
  const std::vector<std::uint32_t> second(all.begin() + 10, all.end());
  EXPECT_EQ(first, keyed_permutation(7, 0, examples));
  EXPECT_EQ(second, keyed_permutation(7, 1, examples));
  EXPECT_NE(first, second);
}

TEST(Sampler, is_a_function_of_seed_and_step_in_any_order) {
  Sampler sampler(3, 8, 21);
  for (const std::uint32_t t : {50U, 2U, 3U, 0U, 51U, 2U}) {
    EXPECT_EQ(sampler.indices(t), Sampler(3, 8, 21).indices(t)) << t;
  }
  EXPECT_NE(Sampler(3, 8, 21).indices(0), Sampler(0, 8, 21).indices(0));
}

TEST(Sampler, fills_a_batch_larger_than_the_set_from_several_epochs) {
  const auto batch = Sampler(1, 7, 3).indices(1);  // positions 7..13: epochs 2, 3 and 4
  std::vector<std::uint32_t> expected;
  for (std::uint32_t epoch = 2; epoch <= 4; ++epoch) {
    const auto p = keyed_permutation(1, epoch, 3);
    expected.insert(expected.end(), p.begin(), p.end());
  }
  EXPECT_EQ(batch, std::vector<std::uint32_t>(expected.begin() + 1, expected.begin() + 8));
}

TEST(Sampler, draws_every_permutation_equally_often) {
  std::array<int, 6> seen{};
  constexpr std::uint32_t epochs = 6000;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    const auto p = keyed_permutation(11, epoch, 3);
    ++seen[2 * p[0] + (p[1] > p[2] ? 1 : 0)];
  }
  double chi_square = 0.0;
  for (const int n : seen) {
    chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
  }
  EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom: exceeded once in a thousand
}

TEST(Sampler, refuses_empty_sets_and_batches) {
  EXPECT_NE(message_of([] { Sampler(1, 4, 0); }).find("no examples"), std::string::npos);
  EXPECT_NE(message_of([] { Sampler(1, 0, 4); }).find("zo/batch is 0"), std::string::npos);
  EXPECT_NE(message_of([] { Sampler(1, 2, 1).indices(0xFFFFFFFFU); }).find("epoch"), std::string::npos);
}

TEST(SplitRows, draws_disjoint_subsets_that_follow_the_split_seed) {
  const RowSplit split = split_rows(5, 100, 60, 30);
  EXPECT_EQ(split.train.size(), 60U);
  EXPECT_EQ(split.dev.size(), 30U);
  std::set<std::uint32_t> both(split.train.begin(), split.train.end());
  both.insert(split.dev.begin(), split.dev.end());
  EXPECT_EQ(both.size(), 90U);
  EXPECT_LT(*both.rbegin(), 100U);
  const auto order = keyed_permutation(5, split_epoch, 100);
  EXPECT_EQ(split.train, sorted({order.begin(), order.begin() + 60}));
  EXPECT_EQ(split.dev, sorted({order.begin() + 60, order.begin() + 90}));
  EXPECT_NE(split_rows(6, 100, 60, 30).train, split.train);
}

TEST(SplitRows, takes_what_dev_leaves_where_train_is_not_given) {
  const RowSplit split = split_rows(0, 10, std::nullopt, 4);
  std::vector<std::uint32_t> both = split.train;
  both.insert(both.end(), split.dev.begin(), split.dev.end());
  EXPECT_EQ(split.train.size(), 6U);
  EXPECT_EQ(sorted(both), identity(10));
  EXPECT_EQ(split_rows(0, 10, std::nullopt, 0).train, identity(10));
  EXPECT_EQ(choose_rows(9, 5, std::nullopt), identity(5));
  EXPECT_EQ(choose_rows(5, 100, 60), split_rows(5, 100, 60, 30).train);
}

TEST(SplitRows, refuses_more_rows_than_there_are) {
  EXPECT_NE(message_of([] { split_rows(0, 10, 8, 3); }).find("data/train examples is 8"), std::string::npos);
  EXPECT_NE(message_of([] { split_rows(0, 10, 8, 3); }).find("1 to 7"), std::string::npos);
  EXPECT_NE(message_of([] { split_rows(0, 10, std::nullopt, 10); }).find("data/dev examples is 10"), std::string::npos);
  EXPECT_NE(message_of([] { split_rows(0, 10, 1ULL << 40U, 0); }).find("1 to 10"), std::string::npos);
  EXPECT_NE(message_of([] { choose_rows(0, 10, 11); }).find("11 rows"), std::string::npos);
}

/// Words of counters (0 and 1, 0, 2^32 - 2, 2 << 24) under key 9, times 512 div 2^32, from another implementation in
/// Python.
TEST(Sampler, random_tokens_are_known_and_do_not_depend_on_where_they_start) {
  const std::vector<std::int32_t> known{361, 412, 92, 365, 131, 483, 143, 113};
  EXPECT_EQ(random_tokens(9, 0, 8, 512), known);
  EXPECT_EQ(random_tokens(9, 3, 4, 512), (std::vector<std::int32_t>(known.begin() + 3, known.begin() + 7)));
  for (const std::int32_t id : random_tokens(9, 0, 1000, 7)) EXPECT_TRUE(id >= 0 && id < 7);
}

}  // namespace
}  // namespace distzo2
