// SPDX-License-Identifier: BSD-3-Clause
#include "core/step.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <cmath>
#include <limits>

namespace distzo2 {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Doubles = std::vector<double>;

TEST(Step, lists_evaluations_in_the_order_of_the_record) {
  const auto central = step_evaluations(Difference::central, 2, 0.5);
  ASSERT_EQ(central.size(), 4U);
  const std::vector<std::pair<std::uint32_t, float>> expected{{1, 0.5F}, {1, -0.5F}, {2, 0.5F}, {2, -0.5F}};
  for (std::size_t e = 0; e < 4; ++e) {
    EXPECT_EQ(central[e].direction, expected[e].first);
    EXPECT_EQ(central[e].scale, expected[e].second);
  }
  const auto forward = step_evaluations(Difference::forward, 2, 0.5);
  ASSERT_EQ(forward.size(), 3U);
  EXPECT_EQ(forward[0].scale, 0.0F);
  EXPECT_EQ(forward[0].direction, 0U);
  EXPECT_EQ(forward[2].direction, 2U);
  EXPECT_EQ(forward[2].scale, 0.5F);
  EXPECT_EQ(evaluation_count(Difference::central, 3), 6);
  EXPECT_EQ(evaluation_count(Difference::forward, 3), 4);
}

TEST(Step, averages_over_terms_not_over_sequences) {
  // two evaluations of three sequences with 1, 2 and 5 terms
  const Doubles losses{1.0, 2.0, 5.0, 2.0, 4.0, 2.0};
  EXPECT_EQ(mean_losses(losses, Doubles{1.0, 2.0, 5.0}), (Doubles{1.0, 1.0}));
  EXPECT_EQ(mean_losses(losses, Doubles{1.0, 1.0, 0.0}), (Doubles{4.0, 4.0}));
  EXPECT_THROW(mean_losses(losses, Doubles{1.0, 1.0, 1.0, 1.0}), Error);
  EXPECT_THROW(mean_losses(Doubles{}, Doubles{}), Error);
}

TEST(Step, sums_in_the_order_of_the_sequences) {
  // ((1 + 1e16) - 1e16) = 0, (1 + (1e16 - 1e16)) = 1: only the order given is right
  EXPECT_EQ(mean_losses(Doubles{1.0, 1e16, -1e16}, Doubles{1.0, 0.0, 0.0})[0], 0.0);
  EXPECT_EQ(mean_losses(Doubles{1e16, -1e16, 1.0}, Doubles{1.0, 0.0, 0.0})[0], 1.0);
}

TEST(Step, projects_central_and_forward_differences) {
  EXPECT_EQ(projected_gradients(Difference::central, 0.25, Doubles{3.0, 2.0, 1.0, 4.0}), (Doubles{2.0, -6.0}));
  EXPECT_EQ(projected_gradients(Difference::forward, 0.25, Doubles{2.0, 3.0, 1.5}), (Doubles{4.0, -2.0}));
}

TEST(Step, makes_a_record_by_hand) {
  StepRule rule;
  rule.directions = 2;
  rule.epsilon = 0.25;
  const Doubles losses{3.0, 2.0, 1.0, 4.0};  // one sequence
  const StepOutcome outcome = make_step_record(rule, 17, 0.125, 0.5F, losses, Doubles{1.0}, 4.0);
  EXPECT_TRUE(outcome.finite);
  const StepRecord& r = outcome.record;
  EXPECT_EQ(r.t, 17U);
  EXPECT_EQ(r.lr, 0.125);
  EXPECT_EQ(r.wd, 0.5F);
  EXPECT_EQ(r.losses, losses);
  EXPECT_EQ(r.g_raw, (Doubles{2.0, -6.0}));
  EXPECT_EQ(r.g, (Doubles{2.0, -4.0}));                  // limited to 4
  EXPECT_EQ(r.c, (std::vector<float>{-0.125F, 0.25F}));  // -lr g / q
  EXPECT_THROW(make_step_record(rule, 17, 0.125, 0.5F, Doubles{1.0, 2.0}, Doubles{1.0}, inf), Error);
}

TEST(Step, a_record_that_is_not_finite_changes_nothing) {
  const StepRule rule{Difference::central, 2, 0.25};
  for (const double bad : {nan, inf, -inf}) {
    const StepOutcome outcome = make_step_record(rule, 3, 0.125, 0.5F, Doubles{3.0, 2.0, 1.0, bad}, Doubles{1.0}, inf);
    EXPECT_FALSE(outcome.finite);
    EXPECT_EQ(outcome.record.c, (std::vector<float>{0.0F, 0.0F}));
    EXPECT_EQ(outcome.record.g, (Doubles{0.0, 0.0}));
    EXPECT_EQ(outcome.record.wd, 0.0F);
    EXPECT_EQ(decay_factor(outcome.record), 1.0F);
    EXPECT_EQ(outcome.record.g_raw[0], 2.0);
    EXPECT_FALSE(std::isfinite(outcome.record.g_raw[1]));
  }
  // losses that are finite, but a c beyond the floats
  const StepOutcome far =
      make_step_record({Difference::central, 1, 1e-3}, 3, 1.0, 0.0F, Doubles{1e300, 0.0}, Doubles{1.0}, inf);
  EXPECT_FALSE(far.finite);
  EXPECT_EQ(far.record.c[0], 0.0F);
  // no loss terms at all
  EXPECT_FALSE(make_step_record({}, 3, 1.0, 0.0F, Doubles{0.0, 0.0}, Doubles{0.0}, inf).finite);
}

TEST(GradientClip, limits_to_a_multiple_of_the_running_median) {
  GradientClip clip(2.0);
  for (int i = 1; i <= 9; ++i) {
    EXPECT_EQ(clip.limit(), inf) << i;
    clip.push(Doubles{i % 2 == 0 ? -1.0 * i : 1.0 * i});
  }
  EXPECT_EQ(clip.limit(), inf);
  clip.push(Doubles{1000.0});
  EXPECT_EQ(clip.limit(), 11.0);  // 1..9, 1000: the median is 5.5
  clip.push(Doubles{0.5});
  EXPECT_EQ(clip.limit(), 10.0);
  clip.push(Doubles{nan, inf});  // a skipped step says nothing of the size
  EXPECT_EQ(clip.limit(), 10.0);
}

TEST(GradientClip, forgets_steps_beyond_its_window) {
  GradientClip clip(1.0);
  for (std::size_t i = 0; i < GradientClip::window; ++i) {
    clip.push(Doubles{8.0, 8.0});
  }
  EXPECT_EQ(clip.limit(), 8.0);
  for (std::size_t i = 0; i < GradientClip::window / 2; ++i) {
    clip.push(Doubles{2.0, 2.0});
  }
  EXPECT_EQ(clip.limit(), 5.0);  // half of each
  clip.push(Doubles{2.0, 2.0});
  EXPECT_EQ(clip.limit(), 2.0);
}

TEST(GradientClip, is_off_at_zero) {
  GradientClip clip(0.0);
  for (int i = 0; i < 50; ++i) {
    clip.push(Doubles{1.0});
  }
  EXPECT_EQ(clip.limit(), inf);
}

void push(DivergenceWatch& watch, int steps, double loss) {
  for (int i = 0; i < steps; ++i) {
    watch.push(Doubles{loss - 0.5, loss + 0.5});
  }
}

TEST(DivergenceWatch, compares_twenty_steps_with_the_first_twenty) {
  DivergenceWatch watch(3.0);
  push(watch, 20, 1.0);
  EXPECT_FALSE(watch.diverged());
  push(watch, 19, 100.0);
  EXPECT_FALSE(watch.diverged());  // the twenty last ones overlap with the first
  push(watch, 1, 100.0);
  EXPECT_TRUE(watch.diverged());
  EXPECT_EQ(watch.first_mean(), 1.0);
  EXPECT_EQ(watch.last_mean(), 100.0);
}

TEST(DivergenceWatch, the_limit_itself_has_not_diverged) {
  DivergenceWatch watch(3.0);
  push(watch, 20, 1.0);
  push(watch, 20, 3.0);
  EXPECT_FALSE(watch.diverged());
  push(watch, 1, 3.5);
  EXPECT_TRUE(watch.diverged());
  push(watch, 20, 2.0);
  EXPECT_FALSE(watch.diverged());
}

TEST(DivergenceWatch, leaves_out_steps_without_a_loss_but_not_twenty_of_them) {
  DivergenceWatch watch(3.0);
  push(watch, 10, 1.0);
  push(watch, 10, nan);
  EXPECT_EQ(watch.first_mean(), 1.0);
  EXPECT_FALSE(watch.diverged());
  push(watch, 9, inf);
  EXPECT_FALSE(watch.diverged());
  push(watch, 1, inf);
  EXPECT_TRUE(watch.diverged());
  DivergenceWatch off(0.0);
  push(off, 60, nan);
  EXPECT_FALSE(off.diverged());
}

}  // namespace
}  // namespace distzo2
