// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "core/memory_plan.hpp"

#include <string>

namespace distzo2 {

/// The line that ends a run: the command that evaluates its final model, or that makes it of the trajectory where it
/// was not written, ready for a shell. Empty where there is nothing to evaluate on, or no folder to make a model of.
std::string next_command(const RunConfig& config, const RunFolder& folder, const MemoryPlan& plan, bool evaluated,
                         bool written);

}  // namespace distzo2
