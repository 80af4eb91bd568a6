// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/exchange.hpp"

#include "core/error.hpp"
#include "parallel/communicator.hpp"

#include <bit>
#include <span>

namespace distzo2 {
namespace {

/// Calls visit(value) for all that a rank gives, in the order of its message. The ranks that share sequences have the
/// same counts: the first of them gives them.
template <class Visit>
void visit_share(StepLosses& step, const Layout& layout, int rank, Visit&& visit) {
  const Share s = share(layout, rank);
  for (int e = s.evaluations.begin; e < s.evaluations.end; ++e)
    for (int b = s.sequences.begin; b < s.sequences.end; ++b)
      visit(step.losses[static_cast<std::size_t>(e) * static_cast<std::size_t>(layout.batch) +
                        static_cast<std::size_t>(b)]);
  if (place_of(layout, rank).pertp == 0)
    for (int b = s.sequences.begin; b < s.sequences.end; ++b) visit(step.counts[static_cast<std::size_t>(b)]);
}

}  // namespace

Exchange::Exchange(Communicator& world, const Layout& layout) : world_(world), layout_(layout) {
  check_layout(layout, world.size());
  for (int rank = 0; rank < world.size(); ++rank) {
    const Share s = share(layout, rank);
    const int counts = place_of(layout, rank).pertp == 0 ? s.sequences.size() : 0;
    words_.push_back(1 + s.evaluations.size() * s.sequences.size() + counts);
    last_.bytes += static_cast<std::uint64_t>(words_.back()) * sizeof(std::uint64_t);
  }
  if (world.size() == 1) last_.bytes = 0;
}

void Exchange::operator()(StepLosses& step) {
  if (std::ssize(step.counts) != layout_.batch || std::ssize(step.losses) != layout_.evaluations * layout_.batch)
    throw Error(ExitCode::internal, "losses to be exchanged are not those of the layout's step");
  if (world_.size() == 1) return;

  std::vector<std::uint64_t> mine{step.flags};
  visit_share(step, layout_, world_.rank(), [&](double v) { mine.push_back(std::bit_cast<std::uint64_t>(v)); });

  GatherTimes times;
  const std::vector<std::uint64_t> all = world_.gather(std::span<const std::uint64_t>(mine), words_, &times);
  last_.waiting_s = times.waiting_s;
  last_.seconds = times.seconds;

  auto at = all.begin();
  for (int rank = 0; rank < world_.size(); ++rank) {
    step.flags |= static_cast<std::uint32_t>(*at++);
    visit_share(step, layout_, rank, [&](double& v) { v = std::bit_cast<double>(*at++); });
  }
}

}  // namespace distzo2
