// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/open_run.hpp"
#include "app/plan_report.hpp"
#include "app/run_evaluations.hpp"
#include "core/engine.hpp"

#include <string>
#include <vector>

namespace distzo2 {

// What a run says of itself before its first step and after its last one, in lines.

/// What the run is: folder, model, data, memory, arithmetic, and what its user should know of them.
std::vector<std::string> opening_lines(const OpenRun& run, const PlannedRun& planned, const MemoryPlan& plan,
                                       ParameterStore& store);

/// How much of its updates 16-bit storage kept.
std::string rounding_line(const RoundingReport& rounding, double epsilon);

/// What became of the model, and where it is.
std::vector<std::string> result_lines(const RunConfig& config, const RunFolder& folder,
                                      const RunEvaluations& evaluations);

}  // namespace distzo2
