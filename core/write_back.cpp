// SPDX-License-Identifier: BSD-3-Clause
#include "core/write_back.hpp"

#include <algorithm>

namespace distzo2 {

double step_seconds(const WriteBackCost& cost, std::uint32_t every) {
  const double n = every;
  return std::max(cost.compute_s + (n - 1) / 2 * cost.replay_s, cost.read_s + cost.write_s / n);
}

std::uint32_t cheapest_write_back(const WriteBackCost& cost, std::uint32_t round_every) {
  constexpr std::uint32_t most_steps = 8;
  constexpr double wear = 1.02;
  const std::uint32_t last = (most_steps + round_every - 1) / round_every * round_every;
  double least = step_seconds(cost, round_every);
  for (std::uint32_t n = round_every; n <= last; n += round_every) least = std::min(least, step_seconds(cost, n));
  std::uint32_t every = last;
  while (every > round_every && step_seconds(cost, every) > wear * least) every -= round_every;
  return every;
}

}  // namespace distzo2
