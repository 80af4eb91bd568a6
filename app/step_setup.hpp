// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/layout.hpp"
#include "core/perturbation.hpp"
#include "core/sampler.hpp"
#include "core/step.hpp"

#include <cstddef>

namespace distzo2 {

/// What all steps of a deck's run share; `perturbation.t` is set to each step's t.
struct StepSetup {
  StepRule rule;
  Sampler sampler;
  Perturbation perturbation;
};

/// The deck's layout of so many ranks; they may not fit it: check_layout and check_deck tell.
Layout layout_of(const RunConfig& config, int ranks);
/// All of the deck's step on one rank, whatever its layout.
Layout layout_of_one(const RunConfig& config);

/// Over so many training examples.
StepSetup step_setup(const ZoSection& zo, std::size_t examples);

}  // namespace distzo2
