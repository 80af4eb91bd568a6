// SPDX-License-Identifier: BSD-3-Clause
#include "core/objective.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace distzo2 {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Candidates of 1 and 2 tokens; the first three terms belong to other examples.
const std::vector<double> log_prob{-9.0, -9.0, -9.0, std::log(0.5), std::log(0.1), std::log(0.9)};
const ExampleTerms two_answers{{{3, 1}, {4, 2}}, 1};

TEST(Objective, sums_the_label_tokens_of_a_language_model) {
  double count = 0.0;
  const double loss = sequence_loss(Objective::language_model, log_prob, two_answers, count);
  EXPECT_NEAR(loss, 2.407945608651872, 1e-15);  // -ln 0.09
  EXPECT_EQ(count, 2.0);
}

TEST(Objective, classifies_by_mean_token_log_probabilities) {
  double count = 0.0;
  // scores: ln 0.5 and ln sqrt(0.09) = ln 0.3; the second is right: -ln(0.3 / 0.8)
  const double loss = sequence_loss(Objective::classification, log_prob, two_answers, count);
  EXPECT_NEAR(loss, 0.9808292530117262, 1e-15);
  EXPECT_EQ(count, 1.0);
  EXPECT_EQ(predict(candidate_scores(log_prob, two_answers)), 0);
}

TEST(Objective, log_sum_exp_neither_overflows_nor_vanishes) {
  EXPECT_NEAR(log_sum_exp(std::vector<double>{-1000.0, -1000.0}), -1000.0 + 0.6931471805599453, 1e-12);
  EXPECT_NEAR(log_sum_exp(std::vector<double>{1000.0, 0.0}), 1000.0, 1e-12);
  EXPECT_EQ(log_sum_exp(std::vector<double>{-inf, -3.0}), -3.0);
  EXPECT_EQ(log_sum_exp(std::vector<double>{-inf, -inf}), -inf);
  EXPECT_EQ(log_sum_exp(std::vector<double>{}), -inf);
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<double>{-1.0, nan})));
}

TEST(Objective, predicts_the_lowest_index_among_equals_and_never_a_nan) {
  EXPECT_EQ(predict(std::vector<double>{-2.0, -1.0, -1.0}), 1);
  EXPECT_EQ(predict(std::vector<double>{nan, -5.0, nan}), 1);
  EXPECT_EQ(predict(std::vector<double>{-5.0, nan}), 0);
  EXPECT_EQ(predict(std::vector<double>{nan, nan}), 0);
  EXPECT_EQ(predict(std::vector<double>{-inf, -inf}), 0);
}

TEST(Objective, a_non_finite_log_probability_gives_a_non_finite_loss) {
  const std::vector<double> bad{nan, -1.0};
  const ExampleTerms two{{{0, 1}, {1, 1}}, 1};
  double count = 0.0;
  EXPECT_TRUE(std::isnan(sequence_loss(Objective::classification, bad, two, count)));
  const std::vector<double> impossible{-inf, -1.0};
  const ExampleTerms label_impossible{{{0, 1}, {1, 1}}, 0};
  EXPECT_EQ(sequence_loss(Objective::classification, impossible, label_impossible, count), inf);
}

TEST(Objective, refuses_terms_outside_the_batch) {
  double count = 0.0;
  EXPECT_THROW(sequence_loss(Objective::language_model, log_prob, ExampleTerms{{{5, 2}}, 0}, count), Error);
  EXPECT_THROW(sequence_loss(Objective::language_model, log_prob, ExampleTerms{{{0, 0}}, 0}, count), Error);
  EXPECT_THROW(sequence_loss(Objective::language_model, log_prob, ExampleTerms{{{0, 1}}, 1}, count), Error);
}

TEST(EvaluationSum, gives_no_answer_where_a_score_is_not_finite) {
  EvaluationSum sum;
  for (const double bad : {nan, inf, -inf}) {
    add_example(sum, Objective::classification, std::vector<double>{-1.0, bad}, ExampleTerms{{{0, 1}, {1, 1}}, 0});
  }
  EXPECT_EQ(sum.accuracy(), 0.0);
  EXPECT_EQ(sum.examples, 3U);
  EXPECT_EQ(sum.confusion, std::vector<std::uint64_t>(4, 0));
}

TEST(EvaluationSum, counts_confusions_accuracy_and_loss) {
  const std::vector<double> scores{std::log(0.75), std::log(0.25)};
  EvaluationSum sum;
  for (const int label : {0, 0, 1, 0}) {
    add_example(sum, Objective::classification, scores, ExampleTerms{{{0, 1}, {1, 1}}, label});
  }
  EXPECT_EQ(sum.confusion, (std::vector<std::uint64_t>{3, 0, 1, 0}));
  EXPECT_EQ(sum.examples, 4U);
  EXPECT_EQ(sum.accuracy(), 0.75);
  EXPECT_NEAR(sum.mean_loss(), -(3.0 * std::log(0.75) + std::log(0.25)) / 4.0, 1e-15);
  // an example with three candidates widens the table and keeps the counts
  const std::vector<double> three{-3.0, -2.0, -1.0};
  add_example(sum, Objective::language_model, three, ExampleTerms{{{0, 1}, {1, 1}, {2, 1}}, 1});
  EXPECT_EQ(sum.confusion, (std::vector<std::uint64_t>{3, 0, 0, 1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(sum.right, 3U);
  EXPECT_EQ(sum.terms, 5.0);
}

}  // namespace
}  // namespace distzo2
