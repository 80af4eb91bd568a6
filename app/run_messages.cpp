// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_messages.hpp"

#include "app/data_notes.hpp"
#include "app/machine.hpp"
#include "app/model_export.hpp"
#include "app/progress.hpp"
#include "app/summary.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

namespace distzo2 {
namespace {

std::string data_line(const LoadedData& data) {
  return fmt::format("data     train {}{}{}", data.train->source, data.dev ? "; dev " + data.dev->source : "",
                     data.test ? "; test " + data.test->source : "");
}

/// Where the best model is, after a line that says which it is.
std::string best_place(const RunConfig& config, const RunFolder& folder, const RunEvaluations& evaluations) {
  if (evaluations.best()->step == 0) return ", the base model: no later one was better";
  if (evaluations.best_is_written()) return "; it is in " + folder.best_model().string();
  return config.model.random() ? "" : "; not written, but export --step writes it";
}

}  // namespace

std::vector<std::string> opening_lines(const OpenRun& run, const PlannedRun& planned, const MemoryPlan& plan,
                                       ParameterStore& store) {
  const auto& [config, model, table, data] = planned;
  std::vector<std::string> lines{"run      " + run.folder.value().path.string(), "model    " + describe(model, table),
                                 data_line(data)};
  for (const std::string& note : notes_of(data, config.zo.batch)) lines.push_back("note     " + note);
  for (const std::string& note : notes_of_memory(config, plan)) lines.push_back("note     " + note);
  lines.push_back("memory   " + memory_line(plan));
  lines.push_back("compute  " + describe_compute(config.precision.compute) +
                  (plan.machine == Machine::device ? "; resumed on such a GPU with the same libraries"
                                                   : "; resumed on this instruction set and GEMM") +
                  ", the run keeps its bits");
  if (!run.lock->note().empty()) lines.push_back("note     " + run.lock->note());
  if (!run.lock->problem().empty()) lines.push_back("note     " + run.lock->problem());
  if (const std::string problem = writes_models(config, store) ? export_problem(store) : ""; !problem.empty())
    lines.push_back(
        fmt::format("warning  final/ and best/ cannot be written as it stands: {}; store in bf16 or fp32, "
                    "or set output/write models to never",
                    problem));
  return lines;
}

std::string rounding_line(const RoundingReport& rounding, double epsilon) {
  const double noise = rounding.accumulated_noise() / epsilon;
  return fmt::format("rounding {:.3f} of the updates arrived; its noise adds up to {:.3f} epsilon{}",
                     rounding.realised_share(), noise,
                     noise > 1 ? ": more than the perturbation itself; store in fp32 or round less often" : "");
}

std::vector<std::string> result_lines(const RunConfig& config, const RunFolder& folder,
                                      const RunEvaluations& evaluations) {
  std::vector<std::string> lines;
  const auto first = evaluations.reported(0), last = evaluations.reported(config.zo.steps);
  if (first && last)
    lines.push_back(fmt::format("result   accuracy {:.4f} -> {:.4f}, loss {:.4f} -> {:.4f}", first->accuracy,
                                last->accuracy, first->loss, last->loss));
  for (const std::string& miss : missed_expectations(config.expected, last)) lines.push_back("missed   " + miss);
  if (const auto& best = evaluations.best())
    lines.push_back(fmt::format("best     step {} on dev: accuracy {:.4f}, loss {:.4f}{}", best->step,
                                best->result.accuracy, best->result.loss, best_place(config, folder, evaluations)));
  lines.push_back("done     " + folder.summary().string());
  return lines;
}

}  // namespace distzo2
