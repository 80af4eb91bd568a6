// SPDX-License-Identifier: BSD-3-Clause
#include "core/schedule.hpp"

namespace distzo2 {

namespace {

/// cos(pi * x) for x in [0, 1/2] by its Taylor series, relative to the result's scale good to 1e-16. The library's cos
/// may differ by a bit from one machine to the next, and the learning rate enters the trajectory.
double cos_pi(double x) {
  constexpr double pi = 3.14159265358979323846;
  const double y = (pi * x) * (pi * x);
  double sum = 1.0;
  double term = 1.0;
  for (int n = 1; n <= 11; ++n) {
    term *= -y / ((2.0 * n - 1.0) * (2.0 * n));
    sum += term;
  }
  return sum;
}

}  // namespace

double learning_rate(const LearningRate& rate, std::uint32_t t) {
  if (t < rate.warm_up) {
    return rate.peak * static_cast<double>(t) / static_cast<double>(rate.warm_up);
  }
  if (rate.schedule == Schedule::constant) {
    return rate.peak;
  }
  if (t >= rate.steps) {
    return 0.0;
  }
  const double left = static_cast<double>(rate.steps - t) / static_cast<double>(rate.steps - rate.warm_up);
  if (rate.schedule == Schedule::linear) {
    return rate.peak * left;
  }
  // (1 + cos(pi (1 - left))) / 2 = (1 - cos(pi left)) / 2, reduced to [0, 1/2] by symmetry
  const double c = left <= 0.5 ? cos_pi(left) : -cos_pi(1.0 - left);
  return rate.peak * (0.5 * (1.0 - c));
}

}  // namespace distzo2
