// SPDX-License-Identifier: BSD-3-Clause
#include "app/step_setup.hpp"

#include <algorithm>
#include <cstdint>

namespace distzo2 {

Layout layout_of(const RunConfig& config, int ranks) {
  const auto pertp = static_cast<int>(config.parallel.pertp);
  const int ddp = config.parallel.ddp ? static_cast<int>(*config.parallel.ddp) : std::max(1, ranks / pertp);
  return {pertp, ddp, config.parallel.order,
          evaluation_count(config.zo.difference, static_cast<int>(config.zo.directions)),
          static_cast<int>(config.zo.batch)};
}

StepSetup step_setup(const ZoSection& zo, std::size_t examples) {
  const StepRule rule{zo.difference, static_cast<int>(zo.directions), zo.epsilon};
  const auto batch = static_cast<int>(zo.batch);
  return {rule,
          {1, 1, PertpOrder::inner, evaluation_count(rule.difference, rule.directions), batch},
          Sampler(zo.seed, batch, static_cast<std::uint32_t>(examples)),
          {zo.seed, 0, zo.kind, step_evaluations(rule.difference, rule.directions, rule.epsilon)}};
}

}  // namespace distzo2
