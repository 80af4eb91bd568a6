// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_config.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <type_traits>

#include "app/deck_checks.hpp"
#include "app/find_task.hpp"
#include "core/error.hpp"
#include "io/deck.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace {

using Teuchos::ParameterList;

// The words of the deck in the order of the enumerators.
constexpr std::array<const char*, 2> words_of(Objective) {
  return {"language model", "classification"};
}
constexpr std::array<const char*, 2> words_of(DirectionKind) {
  return {"gaussian", "rademacher"};
}
constexpr std::array<const char*, 2> words_of(Difference) {
  return {"central", "forward"};
}
constexpr std::array<const char*, 3> words_of(Schedule) {
  return {"constant", "linear", "cosine"};
}
constexpr std::array<const char*, 2> words_of(NonFinite) {
  return {"skip", "stop"};
}
constexpr std::array<const char*, 3> words_of(Storage) {
  return {"fp32", "bf16", "fp16"};
}
constexpr std::array<const char*, 3> words_of(Compute) {
  return {"fp32", "bf16", "fp16"};
}
constexpr std::array<const char*, 2> words_of(Rounding) {
  return {"stochastic", "nearest"};
}
constexpr std::array<const char*, 3> words_of(FamilyKind) {
  return {"opt", "llama", "qwen3"};
}
constexpr std::array<const char*, 2> words_of(Weights) {
  return {"folder", "random"};
}
constexpr std::array<const char*, 2> words_of(Staging) {
  return {"auto", "always"};
}
constexpr std::array<const char*, 2> words_of(Groups) {
  return {"on", "off"};
}
constexpr std::array<const char*, 2> words_of(PertpOrder) {
  return {"pertp inner", "ddp inner"};
}
constexpr std::array<const char*, 2> words_of(Slices) {
  return {"auto", "off"};
}
constexpr std::array<const char*, 3> words_of(WriteModels) {
  return {"auto", "always", "never"};
}

/// Every key of the deck with the field that holds it: what reading and writing both go through.
template <class Config, class Visit>
void visit_keys(Config& c, Visit&& visit) {
  visit("model/folder", c.model.folder);
  visit("model/shape", c.model.shape);
  visit("model/family", c.model.family);
  visit("model/weights", c.model.weights);
  visit("model/seed", c.model.seed);
  visit("model/tied head", c.model.tied_head);
  visit("model/allow non-finite weights", c.model.allow_non_finite_weights);
  visit("data/task", c.data.task);
  visit("data/train", c.data.train);
  visit("data/dev", c.data.dev);
  visit("data/test", c.data.test);
  visit("data/train examples", c.data.train_examples);
  visit("data/dev examples", c.data.dev_examples);
  visit("data/split seed", c.data.split_seed);
  visit("data/sequence length", c.data.sequence_length);
  visit("data/max length", c.data.max_length);
  visit("data/leading token", c.data.leading_token);
  visit("data/truncate", c.data.truncate);
  visit("zo/objective", c.zo.objective);
  visit("zo/steps", c.zo.steps);
  visit("zo/batch", c.zo.batch);
  visit("zo/seed", c.zo.seed);
  visit("zo/epsilon", c.zo.epsilon);
  visit("zo/directions", c.zo.directions);
  visit("zo/kind", c.zo.kind);
  visit("zo/difference", c.zo.difference);
  visit("zo/learning rate", c.zo.learning_rate);
  visit("zo/schedule", c.zo.schedule);
  visit("zo/warm-up", c.zo.warm_up);
  visit("zo/weight decay", c.zo.weight_decay);
  visit("zo/clip", c.zo.clip);
  visit("zo/diverged factor", c.zo.diverged_factor);
  visit("zo/non-finite", c.zo.non_finite);
  visit("precision/storage", c.precision.storage);
  visit("precision/compute", c.precision.compute);
  visit("precision/rounding", c.precision.rounding);
  visit("precision/round every", c.precision.round_every);
  visit("precision/reproducible", c.precision.reproducible);
  visit("memory/device budget", c.memory.device_budget);
  visit("memory/host budget", c.memory.host_budget);
  visit("memory/scratch folder", c.memory.scratch_folder);
  visit("memory/staging", c.memory.staging);
  visit("memory/groups", c.memory.groups);
  visit("memory/write back every", c.memory.write_back_every);
  visit("memory/buffers", c.memory.buffers);
  visit("memory/keep store", c.memory.keep_store);
  visit("memory/scratch persistent", c.memory.scratch_persistent);
  visit("parallel/pertp", c.parallel.pertp);
  visit("parallel/ddp", c.parallel.ddp);
  visit("parallel/order", c.parallel.order);
  visit("parallel/slices", c.parallel.slices);
  visit("parallel/shared memory folder", c.parallel.shared_memory_folder);
  visit("parallel/timeout", c.parallel.timeout_s);
  visit("parallel/consistency check every", c.parallel.check_every);
  visit("parallel/device", c.parallel.device);
  visit("parallel/threads", c.parallel.threads);
  visit("checkpoint/trajectory sync", c.checkpoint.trajectory_sync_s);
  visit("checkpoint/time limit", c.checkpoint.time_limit_s);
  visit("checkpoint/every steps", c.checkpoint.every_steps);
  visit("checkpoint/every minutes", c.checkpoint.every_minutes);
  visit("checkpoint/keep", c.checkpoint.keep);
  visit("output/folder", c.output.folder);
  visit("output/log every", c.output.log_every);
  visit("output/evaluate every", c.output.evaluate_every);
  visit("output/write models", c.output.write_models);
  visit("output/trace file", c.output.trace_file);
  visit("expected/accuracy at least", c.expected.accuracy_at_least);
  visit("expected/final loss at most", c.expected.final_loss_at_most);
}

/// The field as the deck would have it, and back. The text was accepted by the valid list, so it is of the right form.
struct FieldText {
  static std::string write(const std::filesystem::path& v) { return v.string(); }
  static std::string write(const std::string& v) { return v.empty() ? "none" : v; }
  static std::string write(bool v) { return v ? "true" : "false"; }
  static std::string write(double v) { return number_text(v); }
  static std::string write(std::uint32_t v) { return fmt::format("{}", v); }
  static std::string write(std::uint64_t v) { return fmt::format("{}", v); }
  static std::string write(const ByteCount& v) { return fmt::format("{} B", v.count); }
  static std::string write(const LeadingToken& v) {
    return v.kind == LeadingToken::Kind::automatic ? "auto"
           : v.kind == LeadingToken::Kind::none    ? "none"
                                                   : fmt::format("{}", v.id);
  }
  static std::string write(const Interval& v) {
    return v.steps > 0 ? fmt::format("{}", v.steps) : duration_text(v.seconds);
  }
  template <class E>
  requires std::is_enum_v<E>
  static std::string write(E v) { return words_of(v).at(static_cast<std::size_t>(v)); }

  static void read(const std::string& text, std::filesystem::path& v) { v = text; }
  static void read(const std::string& text, std::string& v) { v = text == "none" ? "" : text; }
  static void read(const std::string& text, bool& v) { v = text == "true"; }
  static void read(const std::string& text, double& v) {
    const auto number = parse_number(text);
    v = number ? *number : parse_duration(text).value();
  }
  static void read(const std::string& text, std::uint32_t& v) {
    v = static_cast<std::uint32_t>(parse_unsigned(text).value());
  }
  static void read(const std::string& text, std::uint64_t& v) { v = parse_unsigned(text).value(); }
  static void read(const std::string& text, ByteCount& v) { v.count = parse_bytes(text).value(); }
  static void read(const std::string& text, LeadingToken& v) {
    v = text == "auto"   ? LeadingToken{}
        : text == "none" ? LeadingToken{LeadingToken::Kind::none, 0}
                         : LeadingToken{LeadingToken::Kind::id, static_cast<std::int32_t>(parse_integer(text).value())};
  }
  static void read(const std::string& text, Interval& v) {
    const auto steps = parse_unsigned(text);
    v = steps ? Interval{static_cast<std::uint32_t>(*steps), 0.0} : Interval{0, parse_duration(text).value()};
  }
  template <class E>
  requires std::is_enum_v<E>
  static void read(const std::string& text, E& v) {
    const auto words = words_of(E{});
    v = static_cast<E>(std::find(words.begin(), words.end(), text) - words.begin());
  }
};

/// An optional that is empty is the first of the key's words ("auto", "all", "none").
template <class T>
void read_field(const DeckKey&, const std::string& text, T& field) {
  FieldText::read(text, field);
}
template <class T>
void read_field(const DeckKey& key, const std::string& text, std::optional<T>& field) {
  field.reset();
  if (text != key.rule().words.front()) {
    FieldText::read(text, field.emplace());
  }
}

template <class T>
std::string write_field(const DeckKey& key, const T& field) {
  const std::string text = FieldText::write(field);
  return key.rule().kind == KeyKind::duration ? duration_text(parse_number(text).value()) : text;
}
template <class T>
std::string write_field(const DeckKey& key, const std::optional<T>& field) {
  return field ? write_field(key, *field) : key.rule().words.front();
}

const Teuchos::ParameterEntry& entry_of(const ParameterList& values, const std::string& path) {
  const std::size_t slash = path.find('/');
  return values.sublist(path.substr(0, slash)).getEntry(path.substr(slash + 1));
}

}  // namespace

bool DataSection::random_tokens() const {
  return task == "random tokens";
}

RunConfig read_run_config(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  const Deck deck = read_deck(file, sets);
  RunConfig config;
  config.deck = file;
  visit_keys(config, [&](const std::string& path, auto& field) {
    const DeckKey& key = deck_key(path);
    read_field(key, key.text_of(entry_of(deck.values, path)), field);
  });
  if (const auto place = deck.places.find("model/family"); place != deck.places.end())
    config.model.family_place = place->second;
  if (const auto place = deck.places.find("output/folder"); place != deck.places.end())
    config.output.folder_by_option = place->second.starts_with("--set");
  if (!config.data.random_tokens())
    config.data.task = find_task(config.data.task.string(), file,
                                 [&](const std::string& problem) { refuse_key(deck, "data/task", problem); });
  check_deck(config, deck);
  return config;
}

std::string resolved_deck_yaml(const RunConfig& config) {
  ParameterList values;
  visit_keys(config, [&](const std::string& path, const auto& field) {
    const DeckKey& key = deck_key(path);
    std::string problem;
    const auto entry = key.convert(write_field(key, field), false, problem);
    if (!entry) {
      throw Error(ExitCode::internal, fmt::format("{}: {}", path, problem));
    }
    const std::size_t slash = path.find('/');
    values.sublist(path.substr(0, slash)).setEntry(path.substr(slash + 1), *entry);
  });
  return deck_yaml(values);
}

std::vector<KeyValue> mathematical_keys(const RunConfig& config) {
  static constexpr std::array<std::string_view, 28> names{"model/shape",
                                                          "model/seed",
                                                          "model/tied head",
                                                          "data/sequence length",
                                                          "data/task",
                                                          "data/train",
                                                          "data/train examples",
                                                          "data/dev examples",
                                                          "data/split seed",
                                                          "data/max length",
                                                          "data/leading token",
                                                          "zo/objective",
                                                          "zo/batch",
                                                          "zo/seed",
                                                          "zo/epsilon",
                                                          "zo/directions",
                                                          "zo/kind",
                                                          "zo/difference",
                                                          "zo/learning rate",
                                                          "zo/schedule",
                                                          "zo/warm-up",
                                                          "zo/weight decay",
                                                          "zo/clip",
                                                          "zo/non-finite",
                                                          "precision/storage",
                                                          "precision/compute",
                                                          "precision/rounding",
                                                          "precision/round every"};
  std::vector<KeyValue> keys;
  visit_keys(config, [&](const std::string& path, const auto& field) {
    const bool steps_count = path == "zo/steps" && config.zo.schedule != Schedule::constant;
    if (!steps_count && std::find(names.begin(), names.end(), path) == names.end()) {
      return;
    }
    std::string value = write_field(deck_key(path), field);
    if (deck_key(path).is_path()) {
      value = std::filesystem::path(value).filename().string();  // a run may move with its data
    }
    keys.push_back({path, value});
  });
  if (!config.model.random()) std::erase_if(keys, [](const KeyValue& k) { return k.key.starts_with("model/"); });
  if (!config.data.random_tokens())
    std::erase_if(keys, [](const KeyValue& k) { return k.key == "data/sequence length"; });
  // Only a dev set drawn from the training file takes examples away from training.
  if (!config.data.dev.empty() || config.data.dev_examples.value_or(0) == 0) {
    std::erase_if(keys, [](const KeyValue& k) { return k.key == "data/dev examples"; });
  }
  return keys;
}

std::vector<KeyValue> keys_of_all_ranks(const RunConfig& config) {
  std::vector<KeyValue> keys;
  visit_keys(config, [&](const std::string& path, const auto& field) {
    const DeckKey& key = deck_key(path);
    if (!key.is_path() && !path.starts_with("memory/") && path != "parallel/device" && path != "parallel/threads")
      keys.push_back({path, write_field(key, field)});
  });
  return keys;
}

std::uint64_t mathematical_digest(const RunConfig& config) {
  std::string text;
  for (const KeyValue& k : mathematical_keys(config)) {
    text += k.key + '\0' + k.value + '\0';
  }
  return XXH3_64bits(text.data(), text.size());
}

std::vector<std::string> mathematical_differences(const std::vector<KeyValue>& now,
                                                  const std::vector<KeyValue>& before) {
  std::map<std::string, std::array<std::string, 2>> values;
  for (const KeyValue& k : now) {
    values[k.key][0] = k.value;
  }
  for (const KeyValue& k : before) {
    values[k.key][1] = k.value;
  }
  std::vector<std::string> out;
  for (const auto& [key, value] : values) {
    const bool by_schedule = key == "zo/steps" && (value[0].empty() || value[1].empty());  // that one is named
    if (value[0] != value[1] && !by_schedule) {
      const auto shown = [](const std::string& text) { return text.empty() ? std::string("left out") : text; };
      out.push_back(fmt::format("{}: {} was {}", key, shown(value[0]), shown(value[1])));
    }
  }
  return out;
}

double learning_rate(const ZoSection& zo, std::uint32_t t) {
  return learning_rate(LearningRate{zo.learning_rate, zo.schedule, zo.warm_up, zo.steps}, t);
}

std::uint32_t evaluation_interval(const RunConfig& config) {
  return config.output.evaluate_every.value_or(std::max<std::uint32_t>(1, config.zo.steps / 5));
}

}  // namespace distzo2
