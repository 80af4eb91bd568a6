// SPDX-License-Identifier: BSD-3-Clause
#include "core/step.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace distzo2 {

namespace {

bool all_finite(std::span<const double> x) {
  return std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

double median(std::vector<double> x) {
  if (x.empty()) {
    return 0.0;
  }
  const auto upper = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), upper, x.end());
  if (x.size() % 2 == 1) {
    return *upper;
  }
  const double lower = *std::max_element(x.begin(), upper);
  return lower + (*upper - lower) / 2.0;
}

std::vector<Evaluation> step_evaluations(Difference difference, int directions, double epsilon) {
  const auto scale = static_cast<float>(epsilon);
  std::vector<Evaluation> evaluations;
  if (difference == Difference::forward) {
    evaluations.push_back({});
  }
  for (int k = 1; k <= directions; ++k) {
    evaluations.push_back({static_cast<std::uint32_t>(k), scale});
    if (difference == Difference::central) {
      evaluations.push_back({static_cast<std::uint32_t>(k), -scale});
    }
  }
  return evaluations;
}

std::vector<double> mean_losses(std::span<const double> losses, std::span<const double> counts) {
  const std::size_t sequences = counts.size();
  if (sequences == 0 || losses.size() % sequences != 0) {
    throw Error(ExitCode::internal, "mean_losses: " + std::to_string(losses.size()) + " losses of " +
                                        std::to_string(sequences) + " sequences");
  }
  double terms = 0.0;
  for (const double count : counts) {
    terms += count;
  }
  std::vector<double> mean(losses.size() / sequences);
  for (std::size_t e = 0; e < mean.size(); ++e) {
    double sum = 0.0;
    for (std::size_t b = 0; b < sequences; ++b) {
      sum += losses[e * sequences + b];
    }
    mean[e] = sum / terms;
  }
  return mean;
}

std::vector<double> projected_gradients(Difference difference, double epsilon, std::span<const double> mean) {
  std::vector<double> g;
  if (difference == Difference::central) {
    for (std::size_t e = 0; e + 1 < mean.size(); e += 2) {
      g.push_back((mean[e] - mean[e + 1]) / (2.0 * epsilon));
    }
  } else {
    for (std::size_t e = 1; e < mean.size(); ++e) {
      g.push_back((mean[e] - mean[0]) / epsilon);
    }
  }
  return g;
}

double GradientClip::limit() const {
  if (c_ == 0.0) {
    return std::numeric_limits<double>::infinity();
  }
  std::vector<double> seen;
  for (const auto& step : steps_) {
    seen.insert(seen.end(), step.begin(), step.end());
  }
  if (seen.size() < warm_up) {
    return std::numeric_limits<double>::infinity();
  }
  return c_ * median(std::move(seen));
}

void GradientClip::push(std::span<const double> g_raw) {
  std::vector<double> sizes;
  for (const double g : g_raw) {
    if (std::isfinite(g)) {
      sizes.push_back(std::abs(g));
    }
  }
  steps_.push_back(std::move(sizes));
  if (steps_.size() > window) {
    steps_.pop_front();
  }
}

void DivergenceWatch::push(std::span<const double> losses) {
  double loss = std::numeric_limits<double>::quiet_NaN();
  if (!losses.empty() && all_finite(losses)) {
    loss = 0.0;
    for (const double l : losses) {
      loss += l;
    }
    loss /= static_cast<double>(losses.size());
  }
  if (steps_ < window) {
    first_.add(loss);
  }
  ++steps_;
  last_.push_back(loss);
  if (last_.size() > window) {
    last_.pop_front();
  }
}

void DivergenceWatch::Mean::add(double loss) {
  if (std::isfinite(loss)) {
    sum += loss;
    ++finite;
  }
}

double DivergenceWatch::last_mean() const {
  Mean last;
  for (const double loss : last_) {
    last.add(loss);
  }
  return last.mean();
}

bool DivergenceWatch::diverged() const {
  if (factor_ == 0.0 || steps_ < window) {
    return false;
  }
  const double last = last_mean();
  if (std::isnan(last)) {
    return true;
  }
  return steps_ >= 2 * window && last > factor_ * first_mean();
}

double reported_loss(const StepRecord& r) {
  return std::accumulate(r.losses.begin(), r.losses.end(), 0.0) / static_cast<double>(r.losses.size());
}

StepOutcome make_step_record(const StepRule& rule, std::uint32_t t, double lr, float wd, std::span<const double> losses,
                             std::span<const double> counts, double clip_limit) {
  StepOutcome outcome;
  StepRecord& record = outcome.record;
  record.t = t;
  record.lr = lr;
  record.wd = wd;
  record.losses = mean_losses(losses, counts);
  const auto evaluations = static_cast<std::size_t>(evaluation_count(rule.difference, rule.directions));
  if (record.losses.size() != evaluations) {
    throw Error(ExitCode::internal, "step " + std::to_string(t) + ": losses of " +
                                        std::to_string(record.losses.size()) + " evaluations, not " +
                                        std::to_string(evaluations));
  }
  record.g_raw = projected_gradients(rule.difference, rule.epsilon, record.losses);
  bool finite = all_finite(record.losses);
  for (const double raw : record.g_raw) {
    const double g = std::clamp(raw, -clip_limit, clip_limit);
    const auto c = static_cast<float>(-lr * g / rule.directions);
    finite = finite && std::isfinite(c);
    record.g.push_back(g);
    record.c.push_back(c);
  }
  if (!finite) {
    std::fill(record.g.begin(), record.g.end(), 0.0);
    std::fill(record.c.begin(), record.c.end(), 0.0F);
    record.wd = 0.0F;
  }
  outcome.finite = finite;
  return outcome;
}

}  // namespace distzo2
