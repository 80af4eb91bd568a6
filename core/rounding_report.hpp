// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/trajectory_record.hpp"

#include <cstdint>
#include <span>

namespace distzo2 {

struct Weight;

/// How well 16-bit storage follows the updates asked of it. `wanted` is the change of an element between two rounding
/// points before rounding, `done` the change after it; sums over sampled elements.
struct RoundingReport {
  double done_wanted = 0.0;    // <done, wanted>
  double wanted_wanted = 0.0;  // <wanted, wanted>
  double noise = 0.0;          // sum of (done - wanted)^2
  double samples = 0.0;        // elements times rounding points
  std::uint32_t points = 0;    // rounding points of one element

  /// 1 where the updates arrive in full (on average, with stochastic rounding), 0 where they are lost.
  double realised_share() const { return wanted_wanted > 0.0 ? done_wanted / wanted_wanted : 1.0; }
  /// Rms of the noise that all rounding points left in an element, in the weights' own unit: errors are independent.
  double accumulated_noise() const;
};

/// Elements at the start of each matrix that stand for all of it: the count costs a thousandth of the update itself.
constexpr std::int64_t rounding_sample = 1024;

/// Adds what applying `w.pending[0, w.absorb)` will do to the first elements of the matrix; changes nothing.
void sample_rounding(RoundingReport& report, const Weight& w, float* scratch);

}  // namespace distzo2
