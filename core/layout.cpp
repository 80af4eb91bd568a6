// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <string>

namespace distzo2 {

namespace {

std::string n(std::int64_t value) {
  return std::to_string(value);
}

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

std::string largest_divisor_up_to(int value, int bound) {
  int d = std::min(value, bound);
  while (value % d != 0) {
    --d;
  }
  return n(d);
}

}  // namespace

void check_layout(const Layout& layout, int world) {
  if (layout.pertp < 1 || layout.ddp < 1) {
    refuse("layout: pertp " + n(layout.pertp) + " x ddp " + n(layout.ddp) + ": both must be at least 1");
  }
  if (layout.evaluations < 1 || layout.batch < 1) {
    refuse("layout: " + n(layout.evaluations) + " evaluations of " + n(layout.batch) +
           " sequences: both must be at least 1");
  }
  if (layout.evaluations % layout.pertp != 0) {
    refuse("layout: pertp " + n(layout.pertp) + " does not divide the step's " + n(layout.evaluations) +
           " evaluations; pertp " + largest_divisor_up_to(layout.evaluations, layout.pertp) + " does");
  }
  if (layout.ddp > layout.batch) {
    refuse("layout: ddp " + n(layout.ddp) + " exceeds the batch of " + n(layout.batch) +
           " sequences: a rank would have none; ddp is at most " + n(layout.batch));
  }
  const std::int64_t ranks = std::int64_t{layout.pertp} * layout.ddp;
  if (ranks != world) {
    refuse("layout: pertp " + n(layout.pertp) + " x ddp " + n(layout.ddp) + " = " + n(ranks) + " ranks, but " +
           n(world) + (world == 1 ? " was started" : " were started") + "; start " + n(ranks) +
           " (mpirun -n, srun -n), or change parallel/pertp and parallel/ddp");
  }
}

Place place_of(const Layout& layout, int rank) {
  if (layout.order == PertpOrder::inner) {
    return {rank % layout.pertp, rank / layout.pertp};
  }
  return {rank / layout.ddp, rank % layout.ddp};
}

Share share(const Layout& layout, int rank) {
  if (rank < 0 || rank >= std::int64_t{layout.pertp} * layout.ddp) {
    throw Error(ExitCode::internal,
                "share: rank " + n(rank) + " is not one of the layout's " + n(layout.pertp) + " x " + n(layout.ddp));
  }
  const Place place = place_of(layout, rank);
  const int each = layout.evaluations / layout.pertp;
  const int least = layout.batch / layout.ddp;
  const int longer = layout.batch % layout.ddp;  // ranks with one sequence more
  Share s;
  s.evaluations = {place.pertp * each, (place.pertp + 1) * each};
  s.sequences.begin = place.ddp * least + std::min(place.ddp, longer);
  s.sequences.end = s.sequences.begin + least + (place.ddp < longer ? 1 : 0);
  return s;
}

}  // namespace distzo2
