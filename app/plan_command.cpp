// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/plan_prediction.hpp"
#include "app/plan_report.hpp"
#include "io/json_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace distzo2 {
namespace {

void print_plan(const PlannedRun& run, const MemoryPlan& plan) {
  fmt::print("model     {}\n", describe(run.model, run.table));
  const BatchShape step = largest_passes(run.config, run.data).step;
  if (run.data.train)
    fmt::print("step      {} evaluations of {} sequences, at most {} tokens and {} loss terms\n", step.evaluations,
               run.config.zo.batch, step.tokens, step.terms);
  for (const std::string& line : plan_lines(run, plan)) fmt::print("{}\n", line);
}

}  // namespace

ExitCode plan_command(const PlanOptions& options, const RunConfig& config) {
  // 1. Dimensions and lengths: no weight is read, nothing is allocated.
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_data(config, model, Sets::all);
  const PlannedRun run{config, model, table, data};

  // 2. The plan, on another machine with what a step is predicted to take there.
  if (!options.machine.empty()) {
    const MachineFile machine = read_machine_file(options.machine);
    const PredictedRun predicted =
        predict_run(config, model, table, data, machine, options.machine, options.layout.value_or(Layout{}));
    if (options.deck.json) {
      nlohmann::ordered_json object = plan_object(run, predicted.plan);
      object["prediction"] = prediction_object(predicted, machine);
      fmt::print("{}\n", json_text(object));
      return ExitCode::done;
    }
    print_plan(run, predicted.plan);
    for (const std::string& line : prediction_lines(predicted, machine)) fmt::print("{}\n", line);
    return ExitCode::done;
  }
  const MemoryPlan plan = plan_here(config, model, data, options.gpu_bytes);
  if (options.deck.json) {
    fmt::print("{}\n", json_text(plan_object(run, plan)));
  } else {
    print_plan(run, plan);
    if (const std::string note = host_budget_note(config, machine_memory_sources());
        !note.empty() && !options.gpu_bytes)
      fmt::print("note      {}\n", note);
  }

  // 3. It is for nothing where the store finds no room; the disk of another machine is not known.
  if (!options.gpu_bytes) check_scratch(run, plan);
  return ExitCode::done;
}

}  // namespace distzo2
