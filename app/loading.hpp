// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/engine.hpp"
#include "io/prompt.hpp"
#include "io/task.hpp"
#include "io/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// One set of examples: what it is drawn from, its tokens and what tokenising found.
struct ExampleSet {
  std::string source;  // "train.tsv, 1000 of 67349 rows"
  std::vector<Example> examples;
  PromptReport report;
  std::uint64_t digest = 0;  // over tokens and labels
};

/// Everything of a deck's `data` sublist, tokenised.
struct LoadedData {
  Task task;
  Tokenizer tokenizer;
  Objective objective = Objective::classification;
  PromptOptions options;
  std::optional<ExampleSet> train, dev, test;
  /// The set that `evaluate` and the summary use: test, where the deck names one, else dev.
  const ExampleSet& reported() const;
};

enum class Sets : std::uint8_t { all, evaluation };

/// Reads task, tokenizer and data sets. Throws Error for what is missing, does not fit, or is empty.
LoadedData load_data(const RunConfig& config, const ModelConfig& model, Sets sets);

/// What a user must know of the data: examples shortened, labels that merge with the prompt's end.
std::vector<std::string> notes_of(const LoadedData& data);

/// The rule by which this deck's records change theta.
UpdateRule update_rule(const RunConfig& config);

/// A model folder's weights in an engine: each tensor checked for shape and finite values, rounded to the storage
/// precision and its file pages released; threads over pieces.
std::unique_ptr<Engine> load_engine(const std::filesystem::path& folder, const UpdateRule& rule, Compute compute,
                                    bool allow_non_finite);

/// Human-readable size and shape of a model: "llama, 134.5 M parameters, 30 layers, hidden 576, tied head".
std::string describe(const ModelConfig& config, const TensorTable& table);

}  // namespace distzo2
