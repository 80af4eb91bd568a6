// SPDX-License-Identifier: BSD-3-Clause
#include "app/step_setup.hpp"

#include <cstdint>

namespace distzo2 {

StepSetup step_setup(const ZoSection& zo, std::size_t examples) {
  const StepRule rule{zo.difference, static_cast<int>(zo.directions), zo.epsilon};
  const auto batch = static_cast<int>(zo.batch);
  return {rule,
          {1, 1, PertpOrder::inner, evaluation_count(rule.difference, rule.directions), batch},
          Sampler(zo.seed, batch, static_cast<std::uint32_t>(examples)),
          {zo.seed, 0, zo.kind, step_evaluations(rule.difference, rule.directions, rule.epsilon)}};
}

}  // namespace distzo2
