// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/exchange.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "parallel/communicator.hpp"
#include "tests/support/test_world.hpp"

namespace distzo2 {
namespace {

/// What the whole step has at (e, b): sums that differ in their last bits, a negative zero, an infinity, a NaN.
double loss_at(int e, int b) {
  if (e == 0 && b == 0) return -0.0;
  if (e == 1 && b == 1) return std::numeric_limits<double>::infinity();
  if (e == 1 && b == 2) return std::nan("7");
  return 0.1 * (e + 1) + 1.0 / (b + 3);
}
double count_at(int b) {
  return b + 1;
}

StepLosses whole_step(const Layout& layout) {
  StepLosses step;
  for (int e = 0; e < layout.evaluations; ++e)
    for (int b = 0; b < layout.batch; ++b) step.losses.push_back(loss_at(e, b));
  for (int b = 0; b < layout.batch; ++b) step.counts.push_back(count_at(b));
  return step;
}

/// The same, zero outside the share of `rank`.
StepLosses share_of_step(const Layout& layout, int rank) {
  StepLosses step = whole_step(layout);
  const Share s = share(layout, rank);
  for (int e = 0; e < layout.evaluations; ++e)
    for (int b = 0; b < layout.batch; ++b) {
      const bool mine =
          e >= s.evaluations.begin && e < s.evaluations.end && b >= s.sequences.begin && b < s.sequences.end;
      if (!mine) step.losses[static_cast<std::size_t>(e * layout.batch + b)] = 0.0;
    }
  for (int b = 0; b < layout.batch; ++b)
    if (b < s.sequences.begin || b >= s.sequences.end) step.counts[static_cast<std::size_t>(b)] = 0.0;
  return step;
}

void expect_same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(double)), 0);
}

TEST(Exchange, gives_every_rank_the_whole_step_on_any_layout) {
  Communicator& world = test_world();
  for (int pertp = 1; pertp <= world.size(); ++pertp) {
    if (world.size() % pertp != 0) continue;
    const int ddp = world.size() / pertp;
    for (const PertpOrder order : {PertpOrder::inner, PertpOrder::outer})
      for (const int batch : {ddp, ddp + 2, 2 * ddp + 1, 6 * ddp}) {
        const Layout layout{pertp, ddp, order, 2 * pertp, batch};
        Exchange exchange(world, layout);
        for (int step = 0; step < 3; ++step) {
          StepLosses losses = share_of_step(layout, world.rank());
          losses.flags = world.rank() == step ? 1U << step : 0U;
          exchange(losses);
          const StepLosses whole = whole_step(layout);
          expect_same_bits(losses.losses, whole.losses);
          expect_same_bits(losses.counts, whole.counts);
          EXPECT_EQ(losses.flags, step < world.size() ? 1U << step : 0U);
        }
        const auto doubles = static_cast<std::uint64_t>(batch) * (2 * static_cast<std::uint64_t>(pertp) + 1);
        const std::uint64_t words = world.size() == 1 ? 0 : doubles + static_cast<std::uint64_t>(world.size());
        EXPECT_EQ(exchange.last().bytes, 8 * words);
        EXPECT_GE(exchange.last().waiting_s, 0.0);
        EXPECT_GE(exchange.last().seconds, 0.0);
      }
  }
}

TEST(Exchange, divides_six_sequences_over_four_ranks) {
  if (test_world().size() != 4) return;
  const Layout layout{1, 4, PertpOrder::inner, 2, 6};
  Exchange exchange(test_world(), layout);
  StepLosses losses = share_of_step(layout, test_world().rank());
  exchange(losses);
  expect_same_bits(losses.losses, whole_step(layout).losses);
  EXPECT_EQ(losses.counts, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Exchange, refuses_what_is_not_its_layouts_step) {
  Communicator alone;
  Exchange exchange(alone, {1, 1, PertpOrder::inner, 2, 3});
  StepLosses step{std::vector<double>(6, 1.0), std::vector<double>(3, 1.0), 5};
  exchange(step);
  EXPECT_EQ(step.losses, std::vector<double>(6, 1.0));
  EXPECT_EQ(step.flags, 5U);
  EXPECT_EQ(exchange.last().bytes, 0U);
  step.counts.push_back(1.0);
  EXPECT_THROW(exchange(step), Error);
}

}  // namespace
}  // namespace distzo2
