// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace distzo2 {

/// Which of the two dimensions has neighbouring ranks: inner puts the ranks of one PertP group next to each other.
enum class PertpOrder : std::uint8_t { inner, outer };

/// World = PertP x DDP over the evaluations and sequences of a step.
struct Layout {
  int pertp = 1;  // ranks that share the evaluations; divides `evaluations`
  int ddp = 1;    // ranks that share the batch's sequences; at most `batch`
  PertpOrder order = PertpOrder::inner;
  int evaluations = 2;  // E
  int batch = 1;        // B
};

/// [begin, end).
struct IndexRange {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

/// What one rank computes: never empty.
struct Share {
  IndexRange evaluations;  // into the step's evaluations; neighbours, so that both signs of a direction share one z
  IndexRange sequences;    // into the batch, in the sampler's order
};

/// Throws Error (usage) that states the arithmetic where pertp * ddp is not `world`, pertp does not divide the
/// evaluations, ddp exceeds the batch, or a number is below 1.
void check_layout(const Layout& layout, int world);

/// The rank's place: (pertp index, ddp index).
struct Place {
  int pertp = 0;
  int ddp = 0;
};
Place place_of(const Layout& layout, int rank);

/// The share of `rank` in 0 .. pertp * ddp - 1: equal evaluations; sequences that differ by at most one, the first
/// ranks having more. Throws Error (internal) for any other rank.
Share share(const Layout& layout, int rank);

}  // namespace distzo2
