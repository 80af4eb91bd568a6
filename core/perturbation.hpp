// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"

#include <cstdint>
#include <vector>

namespace distzo2 {

/// One evaluation of a step: W = round_C(fma(scale, z(t, direction), theta)); scale = s * eps, 0 for clean weights.
struct Evaluation {
  std::uint32_t direction = 0;  // k in 1..q, 0 where scale is 0
  float scale = 0.0F;
  bool operator==(const Evaluation&) const = default;
};

/// All evaluations that go forward together, stage by stage. `linear` takes them as data, not as two signs.
struct Perturbation {
  std::uint64_t seed = 0;
  std::uint32_t t = 0;
  DirectionKind kind = DirectionKind::gaussian;
  std::vector<Evaluation> evaluations;
};

/// The evaluation of clean weights alone (evaluate, dev sets).
inline Perturbation clean_perturbation() {
  return Perturbation{0, 0, DirectionKind::gaussian, {Evaluation{}}};
}

}  // namespace distzo2
