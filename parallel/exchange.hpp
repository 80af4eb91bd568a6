// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace distzo2 {

class Communicator;  // parallel/communicator.hpp

/// What a step exchanges: at most B * (E + 1) doubles and one word of flags a rank.
struct StepLosses {
  std::vector<double> losses;  // (evaluations, sequences): sum of the loss terms
  std::vector<double> counts;  // (sequences): number of loss terms
  std::uint32_t flags = 0;     // bitwise or over ranks: signal, time limit
};

/// What exchanges cost one rank.
struct ExchangeCost {
  std::uint64_t bytes = 0;  // of the whole message that every rank ends up with
  double waiting_s = 0.0;   // until the last rank had come
  double seconds = 0.0;     // from then until all values were here
};

/// Gathers the losses, counts and flags of all ranks into every rank's copy, each value at its place of the whole step,
/// so that what is made of them has the same bits everywhere. The identity on one rank.
class Exchange {
public:
  /// `world`: the layout's ranks; outlives this object.
  Exchange(Communicator& world, const Layout& layout);

  /// By all ranks, with values at the places of their own share.
  void operator()(StepLosses& step);
  const ExchangeCost& last() const { return last_; }

private:
  Communicator& world_;
  Layout layout_;
  std::vector<int> words_;  // from each rank
  ExchangeCost last_;
};

}  // namespace distzo2
