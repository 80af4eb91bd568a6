// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/commands.hpp"
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

/// The line that ends a run that was stopped: the command that goes on with it, ready for a shell in the folder in
/// which this one was given, on as many ranks. It names the run where the deck and the options given would take
/// whichever is the newest.
std::string resume_command(const TrainOptions& options, const RunConfig& config, const RunFolder& folder, int ranks);

}  // namespace distzo2
