// SPDX-License-Identifier: BSD-3-Clause
#include "core/rounding_report.hpp"

#include "core/parameter_store.hpp"
#include "core/simd/kernels.hpp"
#include "core/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace distzo2 {

double RoundingReport::accumulated_noise() const {
  return samples > 0.0 ? std::sqrt(noise / samples * static_cast<double>(points)) : 0.0;
}

void sample_rounding(RoundingReport& report, const Weight& w, float* scratch) {
  if (w.storage == Storage::fp32 || w.absorb == 0) return;
  const auto n = static_cast<std::size_t>(std::min(rounding_sample, w.rows * w.cols));
  UpdateRule unrounded = *w.rule;
  unrounded.storage = Storage::fp32;
  std::array<float, rounding_sample> before, wanted, after;
  simd_kernels().load_16(after.data(), reinterpret_cast<const std::uint16_t*>(w.data), w.storage, n);
  std::uint32_t points = 0;
  for (std::size_t begin = 0, end = 0; begin < w.absorb; begin = end) {
    do ++end;
    while (w.pending[end - 1].t % w.rule->round_every != w.rule->round_every - 1);
    const auto records = w.pending.subspan(begin, end - begin);
    before = after;
    wanted = after;
    apply_records(wanted.data(), w.first, n, w.matrix, unrounded, records, scratch);
    apply_records(after.data(), w.first, n, w.matrix, *w.rule, records, scratch);
    for (std::size_t i = 0; i < n; ++i) {
      const double change = static_cast<double>(wanted[i]) - static_cast<double>(before[i]);
      const double done = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      report.done_wanted += done * change;
      report.wanted_wanted += change * change;
      report.noise += (done - change) * (done - change);
    }
    ++points;
  }
  report.samples += static_cast<double>(n) * points;
  report.points = std::max(report.points, w.pending[w.absorb - 1].t / w.rule->round_every + 1);
}

}  // namespace distzo2
