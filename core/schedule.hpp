// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace distzo2 {

/// How the learning rate changes over a run, after the warm-up.
enum class Schedule : std::uint8_t { constant, linear, cosine };

/// lr(t) for t in [0, steps): from 0 to `peak` over `warm_up` steps, then constant, or down to 0 at t = steps.
struct LearningRate {
  double peak = 0.0;
  Schedule schedule = Schedule::constant;
  std::uint32_t warm_up = 0;  // below steps
  std::uint32_t steps = 0;
};

/// The learning rate of step t: peak * t / warm_up in the warm-up (0 at t = 0); with u = (t - warm_up) / (steps -
/// warm_up), linear is peak * (1 - u), cosine peak * (1 + cos(pi u)) / 2. 0 from t = steps on. The same bits on every
/// machine.
double learning_rate(const LearningRate& rate, std::uint32_t t);

}  // namespace distzo2
