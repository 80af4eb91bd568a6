// SPDX-License-Identifier: BSD-3-Clause
#include "app/loading.hpp"

#include "app/model_export.hpp"
#include "core/error.hpp"
#include "core/model_shapes.hpp"
#include "core/pieces.hpp"
#include "core/random_weights.hpp"
#include "core/sampler.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_tensors.hpp"
#include "io/hf_config.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace distzo2 {
namespace {

/// Elements that a thread checks at a time: 1 MiB of a file or more.
constexpr std::int64_t checked_piece = std::int64_t{1} << 19;

// Of random tokens, where the deck leaves it open.
constexpr std::int64_t default_sequence_length = 2048;
constexpr std::uint64_t default_random_examples = 64;

std::uint64_t digest_of(const std::vector<Example>& examples) {
  std::vector<std::int32_t> words;
  const auto put = [&](const std::vector<std::int32_t>& tokens) {
    words.push_back(static_cast<std::int32_t>(tokens.size()));
    words.insert(words.end(), tokens.begin(), tokens.end());
  };
  for (const Example& e : examples) {
    put(e.prompt);
    words.push_back(static_cast<std::int32_t>(e.candidates.size()));
    for (const auto& candidate : e.candidates) put(candidate);
    words.push_back(e.label);
  }
  return XXH3_64bits(words.data(), words.size() * sizeof(std::int32_t));
}

std::optional<std::int32_t> leading_token(const LeadingToken& wanted, const Tokenizer& tokenizer) {
  switch (wanted.kind) {
    case LeadingToken::Kind::automatic:
      return tokenizer.bos();
    case LeadingToken::Kind::none:
      return std::nullopt;
    case LeadingToken::Kind::id:
      return wanted.id;
  }
  return std::nullopt;
}

ExampleSet make_set(const LoadedData& data, const Dataset& rows_of, const std::vector<std::uint32_t>& rows,
                    const ModelConfig& model) {
  const auto encode = [&](std::string_view text) { return data.tokenizer->encode(text); };
  TokenizedRows tokenized = tokenize_rows(data.task, rows_of, rows, encode, data.options);
  ExampleSet set;
  set.source = fmt::format("{}, {} of {} rows", rows_of.path.filename().string(), rows.size(), rows_of.rows());
  set.examples = std::move(tokenized.examples);
  set.path = rows_of.path;
  set.quoted_rows = rows_of.quoted_rows;
  for (const std::uint32_t row : tokenized.rows) set.lines.push_back(rows_of.lines[row]);
  set.report = std::move(tokenized.report);
  set.digest = digest_of(set.examples);
  if (set.examples.empty()) throw Error(ExitCode::file, fmt::format("{}: no example is left", rows_of.path.string()));
  const auto check = [&](const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids)
      if (id < 0 || id >= model.vocab)
        throw Error(ExitCode::file,
                    fmt::format("{}: token id {} is outside the model's {} embedding rows; the tokenizer "
                                "and the model do not belong together",
                                rows_of.path.string(), id, model.vocab));
  };
  for (const Example& e : set.examples) {
    check(e.prompt);
    for (const auto& candidate : e.candidates) check(candidate);
  }
  return set;
}

std::optional<std::uint32_t> count_of(const std::optional<std::uint64_t>& wanted, const Dataset& data,
                                      const char* key) {
  if (!wanted) return std::nullopt;
  if (*wanted > data.rows())
    throw Error(ExitCode::usage,
                fmt::format("{}: {} examples wanted, {} has {}", key, *wanted, data.path.string(), data.rows()));
  return static_cast<std::uint32_t>(*wanted);
}

/// A sequence is one token of prompt and an answer: each of `length` tokens that go forward has a loss term.
LoadedData random_token_data(const DataSection& section, const ModelConfig& model) {
  const auto most = std::min<std::int64_t>(model.max_positions, default_sequence_length);
  const std::int64_t length = section.sequence_length.value_or(static_cast<std::uint32_t>(most));
  if (length > model.max_positions)
    throw Error(ExitCode::usage, fmt::format("data/sequence length: {}, but the model takes {} tokens at most", length,
                                             model.max_positions));
  const std::uint64_t examples = section.train_examples.value_or(default_random_examples);
  LoadedData data;
  data.task.name = section.task.string();
  data.objective = data.task.objective = Objective::language_model;
  data.options.max_length = static_cast<int>(length);
  ExampleSet& set = data.train.emplace();
  set.source = fmt::format("{} sequences of {} random tokens", examples, length);
  const auto ids = static_cast<std::size_t>(length) + 1;
  for (std::uint64_t i = 0; i < examples; ++i) {
    std::vector<std::int32_t> text =
        random_tokens(section.split_seed, i * ids, ids, static_cast<std::int32_t>(model.vocab));
    set.examples.push_back({{text.front()}, {{text.begin() + 1, text.end()}}, 0});
  }
  set.report.lengths.assign(set.examples.size(), static_cast<std::uint32_t>(length));
  set.digest = digest_of(set.examples);
  return data;
}

}  // namespace

const ExampleSet& LoadedData::reported() const {
  if (!test && !dev)
    throw Error(ExitCode::usage,
                "data: nothing to evaluate on: name a data/test or data/dev file, or give data/dev examples");
  return test ? *test : *dev;
}

ModelConfig model_config(const ModelSection& model) {
  if (model.random()) return model_shape(model.shape, model.tied_head);
  ModelConfig config = read_model_config(model.folder);
  if (model.family && *model.family != config.family)
    throw Error(ExitCode::usage,
                fmt::format("{}: model/family: {}, but {} holds a model of the family {}; accepted: {}, or auto",
                            model.family_place, name_of(*model.family), model.folder.string(), name_of(config.family),
                            name_of(config.family)));
  return config;
}

LoadedData load_data(const RunConfig& config, const ModelConfig& model, Sets sets) {
  const DataSection& section = config.data;
  if (section.random_tokens()) {
    if (sets == Sets::evaluation)
      throw Error(
          ExitCode::usage,
          "data/task: random tokens can be trained on and measured with, not evaluated; accepted: a task with a "
          "data/dev or data/test file, and the folder of a model with a tokenizer");
    return random_token_data(section, model);
  }
  LoadedData data{read_task(section.task), Tokenizer::from_folder(config.model.folder), {}, {}, {}, {}, {}};
  data.tokenizer->check_ids(model.vocab);
  data.objective = config.zo.objective.value_or(data.task.objective);
  if (section.leading_token.kind == LeadingToken::Kind::id && section.leading_token.id >= model.vocab)
    throw Error(ExitCode::usage,
                fmt::format("data/leading token: {} is no token of the model; accepted: 0 to {}, or auto, none",
                            section.leading_token.id, model.vocab - 1));
  data.options.leading = leading_token(section.leading_token, *data.tokenizer);
  data.options.truncate = section.truncate;
  data.options.max_length = static_cast<int>(std::min<std::int64_t>(section.max_length, model.max_positions));

  // An evaluation reads one set alone: the test file, else the dev file, else what is drawn from the training file.
  const bool all = sets == Sets::all;
  const bool dev_from_train = section.dev.empty() && section.dev_examples.value_or(0) > 0;
  if (!section.train.empty() && (all || (section.test.empty() && dev_from_train))) {
    const Dataset train = read_dataset(section.train);
    const std::uint32_t dev_count =
        dev_from_train ? count_of(section.dev_examples, train, "data/dev examples").value_or(0) : 0;
    const RowSplit split = split_rows(section.split_seed, train.rows(),
                                      count_of(section.train_examples, train, "data/train examples"), dev_count);
    if (all) data.train = make_set(data, train, split.train, model);
    if (dev_from_train) data.dev = make_set(data, train, split.dev, model);
  }
  if (!section.dev.empty() && section.dev_examples != 0U && (all || section.test.empty())) {
    const Dataset dev = read_dataset(section.dev);
    data.dev = make_set(
        data, dev,
        choose_rows(section.split_seed, dev.rows(), count_of(section.dev_examples, dev, "data/dev examples")), model);
  }
  if (!section.test.empty()) {
    const Dataset test = read_dataset(section.test);
    data.test = make_set(data, test, choose_rows(section.split_seed, test.rows(), std::nullopt), model);
  }
  return data;
}

std::string ExampleSet::where(std::size_t example) const {
  return fmt::format("{}, line {}", path.string(), lines[example]);
}

UpdateRule update_rule(const RunConfig& config) {
  return {config.zo.seed, config.zo.kind, config.precision.storage, config.precision.rounding,
          config.precision.storage == Storage::fp32 ? 1 : config.precision.round_every};
}

WeightSource folder_weights(const std::filesystem::path& folder, const UpdateRule& rule, bool allow_non_finite) {
  const ModelConfig model = read_model_config(folder);
  const auto table = std::make_shared<TensorTable>(tensor_table(model));
  const auto reader = std::make_shared<CheckpointReader>(folder);
  check_tensors(*reader, model, *table);
  const auto read = [=](int tensor, std::int64_t offset, std::span<float> out) {
    const Tensor& t = table->tensors[static_cast<std::size_t>(tensor)];
    reader->read(t.name, offset, out);
    if (!allow_non_finite) reader->check_finite(t.name, offset, out);
    if (rule.storage == Storage::fp16 && t.matrix)
      if (const auto found = std::ranges::find_if(out, overflows_fp16); found != out.end())
        throw Error(ExitCode::file, fmt::format("{}: tensor \"{}\" holds {}, which fp16 cannot hold; set "
                                                "precision/storage to bf16 or fp32",
                                                folder.string(), t.name, *found));
  };
  return {read, [=] { return reader->digest(); }};
}

WeightSource random_weights(const ModelConfig& model, std::uint64_t seed) {
  const auto table = std::make_shared<TensorTable>(tensor_table(model));
  const auto read = [=](int tensor, std::int64_t offset, std::span<float> out) {
    random_values(table->tensors[static_cast<std::size_t>(tensor)], seed, offset, out);
  };
  const std::string name = fmt::format("{} {} {} {}", model.architecture, table->parameters, table->index_end, seed);
  return {read, [=] { return XXH3_64bits(name.data(), name.size()); }};
}

WeightSource weight_source(const RunConfig& config) {
  return config.model.random()
             ? random_weights(model_config(config.model), config.model.seed)
             : folder_weights(config.model.folder, update_rule(config), config.model.allow_non_finite_weights);
}

void read_indices(const WeightSource& weights, const TensorTable& table, const Chunk& chunk, std::int64_t first,
                  std::span<float> out) {
  const std::int64_t end = first + std::ssize(out);
  for (int i = chunk.tensor_begin; i < chunk.tensor_end; ++i) {
    const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
    const std::int64_t from = std::max(first, t.first), until = std::min(end, t.first + t.size());
    if (from < until)
      weights.read(i, from - t.first,
                   out.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(until - from)));
  }
}

void import_weights(ParameterStore& store, const WeightSource& weights, const BlockStorage* disk,
                    const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                    const std::vector<bool>& restored) {
  std::vector<int> wanted;
  std::uint64_t total = 0, done = 0;
  for (const Unit& unit : store.placement().units)
    for (int c = unit.chunk_begin; c < unit.chunk_end; ++c)
      if ((unit.tier != Tier::disk || !disk->holds(c)) &&
          (restored.empty() || !restored[static_cast<std::size_t>(c)])) {
        wanted.push_back(c);
        total += store.chunks().chunks[static_cast<std::size_t>(c)].bytes;
      }
  constexpr std::size_t batch = 32;
  for (std::size_t begin = 0; begin < wanted.size(); begin += batch) {
    const std::span<const int> chunks = std::span(wanted).subspan(begin, std::min(batch, wanted.size() - begin));
    for_each_piece(chunks.size(), [&](std::size_t i) {
      const Chunk& chunk = store.chunks().chunks[static_cast<std::size_t>(chunks[i])];
      store.import_chunk(chunks[i], [&](std::int64_t at, std::span<float> out) {
        read_indices(weights, store.table(), chunk, chunk.first + at, out);
      });
    });
    for (const int c : chunks) done += store.chunks().chunks[static_cast<std::size_t>(c)].bytes;
    if (progress) progress(done, total);
  }
  store.imported();
}

std::unique_ptr<Engine> load_engine(const std::filesystem::path& folder, const UpdateRule& rule, Compute compute,
                                    bool allow_non_finite) {
  auto engine = std::make_unique<Engine>(read_model_config(folder), rule, compute);
  import_weights(engine->store(), folder_weights(folder, rule, allow_non_finite));
  return engine;
}

void check_weights(const WeightSource& weights, const TensorTable& table) {
  struct Piece {
    int tensor;
    std::int64_t offset, size;
  };
  std::vector<Piece> pieces;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& tensor = table.tensors[static_cast<std::size_t>(i)];
    for (std::int64_t at = 0; at < tensor.size(); at += checked_piece)
      pieces.push_back({i, at, std::min(checked_piece, tensor.size() - at)});
  }
  for_each_piece(pieces.size(), [&](std::size_t i) {
    std::vector<float> values(static_cast<std::size_t>(pieces[i].size));
    weights.read(pieces[i].tensor, pieces[i].offset, values);
  });
}

std::string describe(const ModelConfig& config, const TensorTable& table) {
  return fmt::format("{}, {:.1f} M parameters, {} layers, hidden {}, {} head", config.architecture,
                     static_cast<double>(table.parameters) / 1e6, config.layers, config.hidden,
                     config.tied_head ? "tied" : "untied");
}

}  // namespace distzo2
