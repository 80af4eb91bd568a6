// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/plan_report.hpp"
#include "core/cost_model.hpp"
#include "io/machine_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// "2x4": PertP 2, DDP 4. Nothing where the text is no such thing.
std::optional<Layout> parse_layout(std::string_view text);

/// What a deck's step is predicted to take on a machine.
struct PredictedRun {
  MemoryPlan plan;  // of one rank, on one device of the machine or on its host
  StepWork work;
  StepPrediction step;
};

/// Plans the deck's run for a rank of the machine and predicts its step. Budgets that the deck leaves open are the
/// machine's memory: of a device as a free one, of the host less a tenth. Throws Error (usage) for a layout that does
/// not fit the deck or the machine, Error (file) naming the machine file's keys that the prediction lacks.
PredictedRun predict_run(const RunConfig& config, const ModelConfig& model, const TensorTable& table,
                         const LoadedData& data, const MachineFile& machine, const std::filesystem::path& file,
                         const Layout& layout);

/// For people: each lane with its terms, what bounds the step, and the speed, marked as a prediction.
std::vector<std::string> prediction_lines(const PredictedRun& run, const MachineFile& machine);

/// The same for programs, with every number of the machine that was used and where it comes from.
nlohmann::ordered_json prediction_object(const PredictedRun& run, const MachineFile& machine);

}  // namespace distzo2
