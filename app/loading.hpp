// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/block_storage.hpp"
#include "core/engine.hpp"
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
  std::uint32_t quoted_rows = 0;     // of the file, as its Dataset counts them
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

/// The rule by which this deck's records change theta.
UpdateRule update_rule(const RunConfig& config);

/// Where theta_0 comes from: out = elements [offset, offset + out.size()) of a tensor. Any thread may ask.
struct WeightSource {
  std::function<void(int tensor, std::int64_t offset, std::span<float> out)> read;
  std::function<std::uint64_t()> identity;  // of what it reads, cheaply found
};

/// A model folder's weights, each tensor checked for shape and finite values; or random ones of a shape.
WeightSource folder_weights(const std::filesystem::path& folder, const UpdateRule& rule, bool allow_non_finite);
WeightSource random_weights(const ModelConfig& model, std::uint64_t seed);
WeightSource weight_source(const RunConfig& config);

/// Reads all weights once, on all threads: whatever is wrong with one is thrown.
void check_weights(const WeightSource& weights, const TensorTable& table);

/// out = global indices first, first + 1, ... of a chunk; those of no tensor are left as they are.
void read_indices(const WeightSource& weights, const TensorTable& table, const Chunk& chunk, std::int64_t first,
                  std::span<float> out);

/// Fills the store, rounded to its storage precision, a chunk a thread at a time; what `disk` holds already, and what
/// was `restored` where that is given, is left as it is. Of parameters that ranks share each fills its part: by all of
/// them. `progress` (bytes done, bytes in all) is called now and then from the calling thread.
void import_weights(ParameterStore& store, const WeightSource& weights, const BlockStorage* disk = nullptr,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress = nullptr,
                    const std::vector<bool>& restored = {});

/// A model folder's weights in an engine, all resident.
std::unique_ptr<Engine> load_engine(const std::filesystem::path& folder, const UpdateRule& rule, Compute compute,
                                    bool allow_non_finite);

/// Human-readable architecture, size and shape of a model: "LlamaForCausalLM, 134.5 M parameters, 30 layers, hidden
/// 576, tied head".
std::string describe(const ModelConfig& config, const TensorTable& table);

}  // namespace distzo2
