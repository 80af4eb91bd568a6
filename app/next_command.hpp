// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "core/memory_plan.hpp"

#include <cstdint>
#include <string>

namespace distzo2 {

/// What became of a run's final model.
enum class FinalModel : std::uint8_t {
  not_written,
  unevaluated,  // written, but the deck names no data to evaluate it on
  evaluated,    // written
};

/// The line that ends a run: the command that evaluates its final model, or that makes it of the trajectory where it
/// was not written, ready for a shell. Empty where there is nothing to evaluate on, or no folder to make a model of.
std::string next_command(const RunConfig& config, const RunFolder& folder, const MemoryPlan& plan, FinalModel model);

}  // namespace distzo2
