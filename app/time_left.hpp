// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace distzo2 {

/// The sets that a run is evaluated on while it goes.
enum class EvaluatedSet : std::uint8_t { dev, test };

/// Points after `done` steps and later, the one at `done` included where it has one, at which a run of `steps` steps is
/// evaluated on its dev set: every `interval` steps (0: never) and at both ends; done <= steps.
std::uint32_t dev_evaluations_from(std::uint32_t steps, std::uint32_t interval, std::uint32_t done);

/// What a run has to do, as far as its time goes.
struct RunWork {
  std::uint32_t steps = 0, interval = 0;  // interval: steps between evaluations on the dev set, 0: only at the ends
  std::uint32_t evaluations_of_step = 1;  // forward passes of a step's batch
  std::array<std::uint64_t, 2> evaluated_tokens{};  // of one evaluation on the dev and on the test set; 0: no such set
};

/// Seconds until a run's end: the steps that are left at the mean of the last ones, and the evaluations that are left,
/// at what each took the last time or, before that, at the steps' time a token.
class TimeLeft {
public:
  explicit TimeLeft(const RunWork& work) : work_(work) {}

  /// A step took so long for a batch of so many tokens.
  void step(double seconds, std::uint64_t tokens);
  /// An evaluation took so long.
  void evaluation(EvaluatedSet set, double seconds) { evaluation_s_[static_cast<std::size_t>(set)] = seconds; }
  /// After `done` steps, before the evaluation there; 0 where no step has been seen.
  double seconds(std::uint32_t done) const;

private:
  struct Step {
    double seconds;
    double tokens;
  };
  RunWork work_;
  std::deque<Step> recent_;
  bool first_counts_ = true;  // until there is another one: it touches memory for the first time
  std::array<std::optional<double>, 2> evaluation_s_;
};

}  // namespace distzo2
