// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/engine.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/prompt.hpp"
#include "io/task.hpp"
#include "io/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace distzo2 {

/// One set of examples: what it is drawn from, its tokens and what tokenising found.
struct ExampleSet {
  std::string source;  // "train.tsv, 1000 of 67349 rows"
  std::vector<Example> examples;
  std::filesystem::path path;        // of the file
  std::vector<std::uint64_t> lines;  // of the file, from 1, an example each
  PromptReport report;
  std::uint64_t digest = 0;                      // over tokens and labels
  std::string where(std::size_t example) const;  // "test.tsv, line 7", with the file's path
};

/// Everything of a deck's `data` sublist, tokenised.
struct LoadedData {
  Task task;
  std::optional<Tokenizer> tokenizer;  // random tokens need none
  Objective objective = Objective::classification;
  PromptOptions options;
  std::optional<ExampleSet> train, dev, test;
  /// The set that `evaluate` and the summary use: test, where the deck names one, else dev.
  const ExampleSet& reported() const;
};

enum class Sets : std::uint8_t { all, evaluation };

/// The model that the deck names: its folder's config.json, or its shape.
ModelConfig model_config(const ModelSection& model);

/// Reads task, tokenizer and data sets. Throws Error for what is missing, does not fit, or is empty.
LoadedData load_data(const RunConfig& config, const ModelConfig& model, Sets sets);

/// What a user must know of the data: too few or only one label to train on, examples shortened, labels that merge with
/// the prompt's end.
std::vector<std::string> notes_of(const LoadedData& data, std::uint32_t batch);

/// The rule by which this deck's records change theta.
UpdateRule update_rule(const RunConfig& config);

/// Calls `take(tensor, offset, values)` for all weights of a checked model, in pieces and on all threads; their file
/// pages are let go. Throws Error (file) naming the first tensor and element that is not finite, unless that is
/// allowed.
void read_weights(const CheckpointReader& reader, const TensorTable& table, bool allow_non_finite,
                  const std::function<void(int, std::int64_t, std::span<const float>)>& take);

/// A model folder's weights in an engine: each tensor checked for shape and finite values, and rounded to the storage
/// precision.
std::unique_ptr<Engine> load_engine(const std::filesystem::path& folder, const UpdateRule& rule, Compute compute,
                                    bool allow_non_finite);

/// A model with random weights from the counter generator, rounded to the storage precision; threads over pieces.
std::unique_ptr<Engine> random_engine(const ModelSection& model, const UpdateRule& rule, Compute compute);

/// The deck's model: from its folder, or random.
std::unique_ptr<Engine> make_engine(const RunConfig& config, Compute compute);

/// Human-readable architecture, size and shape of a model: "LlamaForCausalLM, 134.5 M parameters, 30 layers, hidden
/// 576, tied head".
std::string describe(const ModelConfig& config, const TensorTable& table);

}  // namespace distzo2
