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

Layout layout_of_one(const RunConfig& config) {
  Layout layout = layout_of(config, 1);
  layout.pertp = layout.ddp = 1;
  return layout;
}

StepSetup step_setup(const ZoSection& zo, std::size_t examples) {
  const StepRule rule{zo.difference, static_cast<int>(zo.directions), zo.epsilon};
  return {rule,
          Sampler(zo.seed, static_cast<int>(zo.batch), static_cast<std::uint32_t>(examples)),
          {zo.seed, 0, zo.kind, step_evaluations(rule.difference, rule.directions, rule.epsilon)}};
}

}  // namespace distzo2
