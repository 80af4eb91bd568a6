// SPDX-License-Identifier: BSD-3-Clause
#include "app/time_left.hpp"

namespace distzo2 {
namespace {

/// A multiple of the write-back intervals in use, as a streamed step that stores takes longer than the others.
constexpr std::size_t window = 32;

}  // namespace

std::uint32_t dev_evaluations_from(std::uint32_t steps, std::uint32_t interval, std::uint32_t done) {
  if (done == steps) return 1;
  const auto within = [&](std::uint32_t below) { return interval == 0 || below == 0 ? 0 : (below - 1) / interval; };
  return (done == 0 ? 1 : 0) + within(steps) - within(done) + 1;
}

void TimeLeft::step(double seconds, std::uint64_t tokens) {
  if (recent_.size() == 1 && first_counts_) {
    recent_.clear();
    first_counts_ = false;
  }
  recent_.push_back({seconds, static_cast<double>(tokens)});
  if (recent_.size() > window) recent_.pop_front();
}

double TimeLeft::seconds(std::uint32_t done) const {
  if (recent_.empty()) return 0.0;
  double steps_s = 0.0, tokens = 0.0;
  for (const Step& s : recent_) {
    steps_s += s.seconds;
    tokens += s.tokens;
  }
  const double token_s = tokens > 0 ? steps_s / (tokens * work_.evaluations_of_step) : 0.0;
  double left = steps_s / static_cast<double>(recent_.size()) * (work_.steps - done);
  const std::array<std::uint32_t, 2> evaluations{dev_evaluations_from(work_.steps, work_.interval, done),
                                                 done == 0 ? 2U : 1U};
  for (std::size_t set = 0; set < evaluations.size(); ++set)
    if (const auto all = static_cast<double>(work_.evaluated_tokens[set]); all > 0)
      left += evaluations[set] * evaluation_s_[set].value_or(all * token_s);
  return left;
}

}  // namespace distzo2
