// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/perturbation.hpp"
#include "core/precision.hpp"
#include "core/trajectory_record.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace distzo2 {

/// The evaluations of a step in the order of StepRecord::losses: central 1+, 1-, 2+, 2- ...; forward 0, 1+, 2+ ...
std::vector<Evaluation> step_evaluations(Difference difference, int directions, double epsilon);

/// E: 2q for central, q + 1 for forward.
constexpr int evaluation_count(Difference difference, int directions) {
  return difference == Difference::central ? 2 * directions : directions + 1;
}

/// L[e] = sum_b losses[e * B + b] / sum_b counts[b], summed in the order of b, in double; B = counts.size().
std::vector<double> mean_losses(std::span<const double> losses, std::span<const double> counts);

/// g[k] = (L[k,+] - L[k,-]) / (2 eps), forward: (L[k,+] - L[0]) / eps. `mean` in the order of `step_evaluations`.
std::vector<double> projected_gradients(Difference difference, double epsilon, std::span<const double> mean);

/// The middle value, the mean of the two middle ones where their number is even; 0 of none.
double median(std::vector<double> x);

/// `zo/clip`: |g| limited to c times the median of |g| as measured over the last `window` steps before this one (all
/// directions, finite values only; the mean of the two middle values where their number is even). With fewer than
/// `warm_up` such values nothing is clipped. Its state is a function of the records alone: push them again on resume.
class GradientClip {
public:
  static constexpr std::size_t window = 100;
  static constexpr std::size_t warm_up = 10;
  explicit GradientClip(double c) : c_(c) {}  // c = 0: off
  double limit() const;                       // +inf where nothing is clipped
  void push(std::span<const double> g_raw);   // of one step
private:
  double c_;
  std::deque<std::vector<double>> steps_;  // |g|, oldest first
};

/// Stops a run that diverged: the mean loss of the last 20 steps above `factor` times that of the first 20 (asked from
/// step 40 on), or no finite loss among 20 steps. A step's loss is the mean over its evaluations; steps without a
/// finite one are left out of the means (NaN where none is left). factor = 0: off. State: a function of the records, as
/// above.
class DivergenceWatch {
public:
  static constexpr std::size_t window = 20;
  explicit DivergenceWatch(double factor) : factor_(factor) {}
  void push(std::span<const double> losses);
  bool diverged() const;
  double first_mean() const { return first_.mean(); }
  double last_mean() const;

private:
  struct Mean {
    double sum = 0.0;
    std::size_t finite = 0;
    void add(double loss);
    double mean() const { return sum / static_cast<double>(finite); }
  };
  double factor_;
  std::size_t steps_ = 0;
  Mean first_;
  std::deque<double> last_;
};

/// Mean over a record's evaluations: the loss that is reported for a step.
double reported_loss(const StepRecord& record);

/// What a step's record is made of, beside the losses.
struct StepRule {
  Difference difference = Difference::central;
  int directions = 1;
  double epsilon = 1e-3;
};

/// A step's record; `finite` is false where any L or c is not finite: then c, g and wd are 0 (a skipped step), and
/// the caller either appends it or stops with exit 4, as the deck says.
struct StepOutcome {
  StepRecord record;
  bool finite = true;
};

/// g from the gathered losses (E, B) and counts (B), limited in size to `clip_limit`, and c[k] = float(-lr * g[k] / q).
/// Throws Error (internal) where the sizes do not fit the rule.
StepOutcome make_step_record(const StepRule& rule, std::uint32_t t, double lr, float wd, std::span<const double> losses,
                             std::span<const double> counts, double clip_limit);

}  // namespace distzo2
