// SPDX-License-Identifier: BSD-3-Clause
// The time that a run says is left, from times that are made up.
#include <gtest/gtest.h>

#include "app/time_left.hpp"

namespace distzo2 {
namespace {

TEST(DevEvaluations, are_counted_from_a_step_on) {
  EXPECT_EQ(dev_evaluations_from(12, 5, 0), 4U);  // 0, 5, 10, 12
  EXPECT_EQ(dev_evaluations_from(12, 5, 1), 3U);
  EXPECT_EQ(dev_evaluations_from(12, 5, 5), 3U);
  EXPECT_EQ(dev_evaluations_from(12, 5, 6), 2U);
  EXPECT_EQ(dev_evaluations_from(12, 5, 11), 1U);
  EXPECT_EQ(dev_evaluations_from(12, 5, 12), 1U);
  EXPECT_EQ(dev_evaluations_from(10, 5, 5), 2U);  // 5, 10
  EXPECT_EQ(dev_evaluations_from(12, 0, 0), 2U);
  EXPECT_EQ(dev_evaluations_from(12, 0, 7), 1U);
  EXPECT_EQ(dev_evaluations_from(1, 1, 0), 2U);
  EXPECT_EQ(dev_evaluations_from(0, 5, 0), 1U);  // a deck that evaluates alone
}

TEST(TimeLeft, is_that_of_the_steps_where_nothing_is_evaluated) {
  TimeLeft left({.steps = 100});
  EXPECT_EQ(left.seconds(0), 0.0);  // nothing is known
  left.step(30.0, 10);              // the first one is slow, and all that there is
  EXPECT_DOUBLE_EQ(left.seconds(1), 99 * 30.0);
  left.step(2.0, 10);
  EXPECT_DOUBLE_EQ(left.seconds(2), 98 * 2.0);
  left.step(4.0, 10);
  EXPECT_DOUBLE_EQ(left.seconds(3), 97 * 3.0);
  EXPECT_EQ(left.seconds(100), 0.0);
}

TEST(TimeLeft, follows_the_last_steps) {
  TimeLeft left({.steps = 1000});
  for (int i = 0; i < 200; ++i) left.step(1.0, 10);
  for (int i = 0; i < 32; ++i) left.step(3.0, 10);
  EXPECT_DOUBLE_EQ(left.seconds(232), 768 * 3.0);
}

TEST(TimeLeft, counts_the_evaluations_that_are_left) {
  const RunWork work{.steps = 100, .interval = 20, .evaluations_of_step = 2, .evaluated_tokens = {500, 1000}};
  TimeLeft resumed(work);
  resumed.step(1.0, 50);
  resumed.step(1.0, 50);  // 100 tokens forward a second
  EXPECT_DOUBLE_EQ(resumed.seconds(2), 98 + 5 * 5.0 + 10.0);
  resumed.evaluation(EvaluatedSet::dev, 4.0);
  EXPECT_DOUBLE_EQ(resumed.seconds(2), 98 + 5 * 4.0 + 10.0);
  resumed.evaluation(EvaluatedSet::test, 7.0);
  EXPECT_DOUBLE_EQ(resumed.seconds(60), 40 + 3 * 4.0 + 7.0);
  EXPECT_DOUBLE_EQ(resumed.seconds(99), 1 + 4.0 + 7.0);
}

TEST(TimeLeft, is_within_15_per_cent_after_20_steps_of_a_steady_machine) {
  // A slow first step, batches of different lengths, every eighth step stores, and evaluations.
  const RunWork work{.steps = 600, .interval = 100, .evaluations_of_step = 2, .evaluated_tokens = {20000, 80000}};
  const auto seconds_of = [](std::uint32_t t) {
    return t == 0 ? 9.0 : 0.8 + 0.1 * (t * 7 % 5) + (t % 8 == 7 ? 1.0 : 0.0);
  };
  double truth = 0;
  for (std::uint32_t t = 0; t < work.steps; ++t) truth += seconds_of(t) + (t > 0 && t % work.interval == 0 ? 25.0 : 0);
  truth += 25.0 + 100.0;
  TimeLeft left(work);
  left.evaluation(EvaluatedSet::dev, 25.0);
  left.evaluation(EvaluatedSet::test, 100.0);
  for (std::uint32_t t = 0; t < work.steps; ++t) {
    left.step(seconds_of(t), 1000);
    truth -= seconds_of(t) + (t > 0 && t % work.interval == 0 ? 25.0 : 0);
    if (t + 1 >= 20) {
      EXPECT_NEAR(left.seconds(t + 1), truth, 0.15 * truth) << "after step " << t + 1;
    }
  }
}

}  // namespace
}  // namespace distzo2
