// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/data_notes.hpp"
#include "app/loading.hpp"
#include "app/output_place.hpp"
#include "app/plan_report.hpp"
#include "app/progress.hpp"
#include "core/step.hpp"
#include "io/hf_config.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace distzo2 {
namespace {

constexpr std::size_t shown_examples = 3;

/// A prompt with its token ids; the ids that carry the loss stand in brackets.
std::string example_text(const LoadedData& data, const Example& e) {
  const auto& answer = e.candidates[static_cast<std::size_t>(e.label)];
  std::string text =
      "    prompt  " +
      nlohmann::json(data.tokenizer->decode(e.prompt)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
      "\n    answers";
  for (std::size_t i = 0; i < e.candidates.size(); ++i)
    text += fmt::format(" {}{}",
                        nlohmann::json(data.tokenizer->decode(e.candidates[i]))
                            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                        static_cast<int>(i) == e.label ? " (right)" : "");
  text += fmt::format("\n    ids     {} [{}]", fmt::join(e.prompt, " "), fmt::join(answer, " "));
  if (data.objective == Objective::classification) {
    text += "\n    loss    on";
    for (const auto& candidate : e.candidates) text += fmt::format(" [{}]", fmt::join(candidate, " "));
    text += ", a softmax over their mean log-probabilities";
  } else {
    text += "\n    loss    on the ids in brackets";
  }
  return text;
}

void print_set(const LoadedData& data, const char* name, const ExampleSet& set) {
  fmt::print("{:<9} {}\n", name, set.source);
  fmt::print("          tokens {} to {}, median {}; labels", set.report.shortest(), set.report.longest(),
             set.report.median());
  for (std::size_t i = 0; i < data.task.labels.size(); ++i)
    fmt::print(" {} {}", set.report.label_counts[i],
               data.task.labels[i].word.empty() ? std::to_string(i) : data.task.labels[i].word);
  fmt::print("\n");
}

}  // namespace

ExitCode validate_command(const RunConfig& config) {
  // 1. Model and data, and where everything would be: whatever is wrong with them is thrown here, as by the run.
  check_output_place(config);
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_data(config, model, Sets::all);
  const MemoryPlan plan = plan_here(config, model, data);
  check_scratch({config, model, table, data}, plan);
  if (!config.model.random()) check_weights(weight_source(config), table);

  // 2. What the run is and what it needs.
  const int evaluations = evaluation_count(config.zo.difference, static_cast<int>(config.zo.directions));
  const BatchShape batch = largest_passes(config, data).step;

  fmt::print("model     {}\n", describe(model, table));
  fmt::print("task      {}{}, objective {}\n", data.task.name,
             data.task.path.empty() ? "" : " from " + data.task.path.filename().string(),
             data.objective == Objective::classification ? "classification" : "language model");
  if (data.train) print_set(data, "train", *data.train);
  if (data.dev) print_set(data, "dev", *data.dev);
  if (data.test) print_set(data, "test", *data.test);
  for (const std::string& note : notes_of(data, config.zo.batch)) fmt::print("note      {}\n", note);
  for (const std::string& note : notes_of_memory(config, plan)) fmt::print("note      {}\n", note);
  if (!config.model.random())
    if (const auto keys = unknown_config_keys(config.model.folder); !keys.empty())
      fmt::print("note      config.json: unknown keys, taken to change nothing: {}\n", fmt::join(keys, ", "));
  const ExampleSet& shown = data.train ? *data.train : data.reported();
  for (std::size_t i = 0; data.tokenizer && i < std::min(shown_examples, shown.examples.size()); ++i)
    fmt::print("example {}\n{}\n", i + 1, example_text(data, shown.examples[i]));
  fmt::print("step      {} evaluations of {} sequences, at most {} tokens and {} loss terms\n", evaluations,
             config.zo.batch, batch.tokens, batch.terms);
  const std::uint32_t every = evaluation_interval(config);
  fmt::print("run       {} steps, learning rate {}{}\n", config.zo.steps, number_text(config.zo.learning_rate),
             !data.dev    ? std::string()
             : every == 0 ? ", evaluated on dev at its start and end"
                          : fmt::format(", evaluated on dev every {} steps", every));
  fmt::print("memory    {}\n", memory_line(plan));
  fmt::print("the deck is good\n");
  return ExitCode::done;
}

}  // namespace distzo2
