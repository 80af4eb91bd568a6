// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace distzo2 {

/// What a step exchanges: at most B * (E + 1) doubles and one word of flags a rank.
struct StepLosses {
  std::vector<double> losses;  // (evaluations, sequences): sum of the loss terms
  std::vector<double> counts;  // (sequences): number of loss terms
  std::uint32_t flags = 0;     // bitwise or over ranks: signal, time limit, error
};

/// Gathers the losses, counts and flags of all ranks into every rank's copy; the identity on one rank.
void exchange(StepLosses& step);

}  // namespace distzo2
