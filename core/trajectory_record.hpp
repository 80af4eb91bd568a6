// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// One step as the trajectory keeps it: theta_{t+1} is a pure function of theta_t and this record.
struct StepRecord {
  std::uint32_t t = 0;
  double lr = 0.0;
  float wd = 0.0F;             // weight decay applied this step (0 in a skipped step)
  std::vector<float> c;        // (q) c[k-1] = float(-lr * g[k] / q)
  std::vector<double> g;       // (q) applied g: after clipping
  std::vector<double> g_raw;   // (q) as measured
  std::vector<double> losses;  // (E) L[k,s] in evaluation order: central k=1+,1-,2+,2-...; forward 0,1+,2+...
};

/// What, beside the records, determines an update.
struct UpdateRule {
  std::uint64_t seed = 0;
  DirectionKind kind = DirectionKind::gaussian;
  Storage storage = Storage::fp32;
  Rounding rounding = Rounding::stochastic;
  std::uint32_t round_every = 1;  // R: rounding points are the steps with (t + 1) % R == 0
};

/// d = float(1 - lr * wd) of a decayed tensor.
inline float decay_factor(const StepRecord& r) {
  return static_cast<float>(1.0 - r.lr * static_cast<double>(r.wd));
}

}  // namespace distzo2
