// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule.hpp"

#include <gtest/gtest.h>

namespace distzo2 {
namespace {

TEST(Schedule, constant_keeps_the_peak_after_the_warm_up) {
  const LearningRate rate{4e-5, Schedule::constant, 4, 10};
  EXPECT_EQ(learning_rate(rate, 0), 0.0);
  EXPECT_DOUBLE_EQ(learning_rate(rate, 1), 1e-5);
  EXPECT_DOUBLE_EQ(learning_rate(rate, 3), 3e-5);
  EXPECT_EQ(learning_rate(rate, 4), 4e-5);
  EXPECT_EQ(learning_rate(rate, 9), 4e-5);
}

TEST(Schedule, linear_falls_to_zero_at_the_last_step_but_one) {
  const LearningRate rate{1.0, Schedule::linear, 0, 8};
  EXPECT_EQ(learning_rate(rate, 0), 1.0);
  EXPECT_EQ(learning_rate(rate, 2), 0.75);
  EXPECT_EQ(learning_rate(rate, 7), 0.125);
  EXPECT_EQ(learning_rate(rate, 8), 0.0);
}

TEST(Schedule, linear_starts_to_fall_after_the_warm_up) {
  const LearningRate rate{2.0, Schedule::linear, 2, 10};
  EXPECT_EQ(learning_rate(rate, 1), 1.0);
  EXPECT_EQ(learning_rate(rate, 2), 2.0);
  EXPECT_EQ(learning_rate(rate, 6), 1.0);
  EXPECT_EQ(learning_rate(rate, 9), 0.25);
}

TEST(Schedule, cosine_has_the_values_of_known_angles) {
  const LearningRate rate{1.0, Schedule::cosine, 0, 12};
  EXPECT_EQ(learning_rate(rate, 0), 1.0);
  EXPECT_NEAR(learning_rate(rate, 2), 0.9330127018922193, 1e-15);  // (1 + cos 30 degrees) / 2
  EXPECT_NEAR(learning_rate(rate, 3), 0.8535533905932737, 1e-15);  // 45 degrees
  EXPECT_NEAR(learning_rate(rate, 4), 0.75, 1e-15);                // 60 degrees
  EXPECT_NEAR(learning_rate(rate, 6), 0.5, 1e-15);
  EXPECT_NEAR(learning_rate(rate, 8), 0.25, 1e-15);
  EXPECT_NEAR(learning_rate(rate, 10), 0.0669872981077807, 1e-15);
  EXPECT_EQ(learning_rate(rate, 12), 0.0);
}

TEST(Schedule, no_steps_is_no_division_by_zero) {
  EXPECT_EQ(learning_rate(LearningRate{1.0, Schedule::linear, 0, 0}, 0), 0.0);
}

}  // namespace
}  // namespace distzo2
