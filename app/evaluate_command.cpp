// SPDX-License-Identifier: BSD-3-Clause
#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/data_notes.hpp"
#include "app/loading.hpp"
#include "app/machine.hpp"
#include "app/memory_budget.hpp"
#include "app/output_place.hpp"
#include "app/placed_model.hpp"
#include "app/plan_report.hpp"
#include "app/progress.hpp"
#include "app/step_losses.hpp"
#include "core/clock.hpp"
#include "core/objective.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// Confusion counts as a table: a row a right label, a column a predicted one.
std::string confusion_table(const Task& task, const std::vector<std::uint64_t>& confusion) {
  const std::size_t labels = task.labels.size();
  if (confusion.size() != labels * labels) return {};
  std::string text = fmt::format("{:>16}", "right \\ said");
  for (const TaskLabel& l : task.labels) text += fmt::format("  {:>10}", l.word);
  for (std::size_t i = 0; i < labels; ++i) {
    text += fmt::format("\n{:>16}", task.labels[i].word);
    for (std::size_t j = 0; j < labels; ++j) text += fmt::format("{:>12}", confusion[i * labels + j]);
  }
  return text;
}

/// Whether a file is what --predictions once wrote, or empty.
bool holds_predictions(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return true;
  const auto object = nlohmann::json::parse(line, nullptr, false);
  return object.is_object() && object.contains("predicted") && object.contains("scores");
}

}  // namespace

ExitCode evaluate_command(const EvaluateOptions& options, RunConfig config) {
  if (!options.model.empty()) config.model.folder = options.model;
  if (!options.predictions.empty())
    check_output_file({"--predictions", "predictions", holds_predictions}, options.predictions, config);
  // 1. What is evaluated, said before anything that takes long.
  std::optional<Progress> progress;  // with --json only the result is printed
  if (!options.deck.json) progress.emplace(config.output.log_every, 0);
  const auto say = [&](const std::string& text) {
    if (progress) progress->say(text);
  };
  const ModelConfig model = model_config(config.model);
  say(fmt::format("model     {}", describe(model, tensor_table(model))));
  const LoadedData data = load_data(config, model, Sets::evaluation);
  const ExampleSet& set = data.reported();
  say(fmt::format("set       {}", set.source));
  for (const std::string& note : notes_of(data, config.zo.batch)) say("note      " + note);
  const MemoryPlan plan = plan_here(config, model, data);
  say("memory    " + memory_line(plan));
  say("compute   " + describe_compute(config.precision.compute));

  // 2. The evaluation.
  TemporaryModel placed(config, model, plan, config.precision.compute, progress ? &*progress : nullptr);
  Engine* const engine = &placed.engine();
  const auto start = Clock::now();
  const auto show = [&](std::size_t done) {
    if (progress) progress->working(fmt::format("evaluated {} of {}", done, set.examples.size()));
    return true;
  };
  std::string predictions;
  std::size_t example = 0;
  const auto each = [&](std::span<const double> scores) {
    if (!std::ranges::all_of(scores, [](double s) { return std::isfinite(s); }))
      throw Error(
          ExitCode::diverged,
          fmt::format("{}: the model's scores of its answers, {}, are not all finite, so that there is no answer",
                      set.where(example), fmt::join(scores, ", ")));
    if (!options.predictions.empty())
      predictions +=
          nlohmann::ordered_json{
              {"label", set.examples[example].label}, {"predicted", predict(scores)}, {"scores", scores}}
              .dump() +
          "\n";
    ++example;
  };
  const EvaluationResult result = evaluate(*engine, set.examples, data.objective, show, each).value();
  if (!options.predictions.empty()) replace_text_file(options.predictions, predictions);
  const double seconds = seconds_since(start);

  // 3. The result.
  if (options.deck.json) {
    const nlohmann::ordered_json object{{"model", config.model.folder.string()},
                                        {"task", data.task.name},
                                        {"set", set.source},
                                        {"accuracy", result.accuracy},
                                        {"loss", result.loss},
                                        {"examples", result.examples},
                                        {"confusion", result.confusion},
                                        {"seconds", seconds},
                                        {"peak_host_bytes", peak_resident_bytes()},
                                        {"theta_digest", fmt::format("{:016x}", engine->store().digest())},
                                        {"arithmetic", engine->arithmetic_fingerprint()},
                                        {"git_hash", build_git_hash()},
                                        {"machine", machine_object()}};
    fmt::print("{}\n", json_text(object));
    return ExitCode::done;
  }
  say(fmt::format("accuracy  {:.4f} ({:.0f} of {})", result.accuracy,
                  result.accuracy * static_cast<double>(result.examples), result.examples));
  say(fmt::format("loss      {:.4f}", result.loss));
  say(fmt::format("time      {} ({:.1f} examples/s)", short_duration(seconds),
                  static_cast<double>(result.examples) / seconds));
  if (const std::string table = confusion_table(data.task, result.confusion); !table.empty()) say(table);
  return ExitCode::done;
}

}  // namespace distzo2
