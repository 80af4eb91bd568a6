// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/layout.hpp"
#include "core/model_config.hpp"
#include "core/precision.hpp"
#include "core/schedule.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

// What a deck says, as plain structs: one a sublist. io/deck_valid_list.cpp documents every key. An empty path or
// optional is a key that was left out; all paths are absolute.

/// Where a model's weights come from.
enum class Weights : std::uint8_t { folder, random };

struct ModelSection {
  std::filesystem::path folder;  // or, for random weights, a shape
  std::string shape;             // of core/model_shapes.hpp; empty: the folder's
  std::optional<FamilyKind> family;
  Weights weights = Weights::folder;
  std::uint64_t seed = 0;         // of random weights
  std::optional<bool> tied_head;  // none: as the shape's
  bool allow_non_finite_weights = false;
  std::string family_place;  // "deck.yaml:3", where the family was given
  bool random() const { return weights == Weights::random; }
};

/// The token put before every prompt: what the tokenizer says, none, or this id.
struct LeadingToken {
  enum class Kind : std::uint8_t { automatic, none, id } kind = Kind::automatic;
  std::int32_t id = 0;
  bool operator==(const LeadingToken&) const = default;
};

struct DataSection {
  std::filesystem::path task;  // a JSON file; a bare name in the deck was looked up in the folders of tasks
  std::filesystem::path train, dev, test;
  std::optional<std::uint64_t> train_examples;  // none: all that are left
  std::optional<std::uint64_t> dev_examples;    // none: the whole dev file, or no dev set where none is named
  std::uint64_t split_seed = 0;
  std::optional<std::uint32_t> sequence_length;  // of random tokens
  std::uint32_t max_length = 0;                  // tokens
  LeadingToken leading_token;
  bool truncate = true;        // shorten prompts beyond max_length; else such an example is left out
  bool random_tokens() const;  // the task is "random tokens": no file, no tokenizer
  bool trains() const { return random_tokens() || !train.empty(); }
};

/// What every rank does where a loss or c is not finite.
enum class NonFinite : std::uint8_t { skip, stop };

struct ZoSection {
  std::optional<Objective> objective;  // none: the task's
  std::uint32_t steps = 0;
  std::uint32_t batch = 0;
  std::uint64_t seed = 0;
  double epsilon = 0.0;
  std::uint32_t directions = 1;  // q
  DirectionKind kind = DirectionKind::gaussian;
  Difference difference = Difference::central;
  double learning_rate = 0.0;  // the peak
  Schedule schedule = Schedule::constant;
  std::uint32_t warm_up = 0;  // steps
  double weight_decay = 0.0;
  double clip = 0.0;             // |g| is limited to this times its running median; 0: off
  double diverged_factor = 0.0;  // 0: off
  NonFinite non_finite = NonFinite::skip;
};

struct PrecisionSection {
  Storage storage = Storage::fp32;
  Compute compute = Compute::fp32;
  Rounding rounding = Rounding::stochastic;
  std::uint32_t round_every = 1;
  bool reproducible = true;
};

/// always: what runs on a device runs on the host as well, through a staging copy.
enum class Staging : std::uint8_t { automatic, always };
/// on: one matrix of a block at a time.
enum class Groups : std::uint8_t { on, off };

struct ByteCount {
  std::uint64_t count = 0;
  bool operator==(const ByteCount&) const = default;
};

/// An empty optional is `auto`.
struct MemorySection {
  std::optional<ByteCount> device_budget, host_budget;
  std::filesystem::path scratch_folder;
  Staging staging = Staging::automatic;
  std::optional<Groups> groups;
  std::optional<std::uint32_t> write_back_every;  // a multiple of precision.round_every
  std::optional<std::uint32_t> buffers;           // 2 or 3
  bool keep_store = false;
  bool scratch_persistent = false;  // stores keep a copy of the trajectory
};

/// automatic: the ranks of a node keep one copy of the parameters where that can be.
enum class Slices : std::uint8_t { automatic, off };

struct ParallelSection {
  std::uint32_t pertp = 1;
  std::optional<std::uint32_t> ddp;  // none: the ranks that were started, divided by pertp
  PertpOrder order = PertpOrder::inner;
  Slices slices = Slices::automatic;
  std::filesystem::path shared_memory_folder;  // empty: the MPI library's own
  double timeout_s = 0.0;
  std::optional<std::uint32_t> check_every;  // steps; 0: at the end alone; none: as the placement allows
  std::optional<std::uint32_t> device;       // none: the rank's number on its node, modulo devices
  std::optional<std::uint32_t> threads;      // none: what OpenMP says (OMP_NUM_THREADS, else this rank's cores)
};

struct CheckpointSection {
  double trajectory_sync_s = 1.0;      // 0: after every step
  std::optional<double> time_limit_s;  // none: no limit
  // Between two checkpoints of the parameters; both none: there are none.
  std::optional<std::uint32_t> every_steps;
  std::optional<double> every_minutes;
  std::uint32_t keep = 2;
  bool on() const { return every_steps || every_minutes; }
};

/// Every so many steps, or every so many seconds: exactly one of the two is not 0.
struct Interval {
  std::uint32_t steps = 0;
  double seconds = 0.0;
  bool operator==(const Interval&) const = default;
};

/// automatic: models under 10 GB, since base model and trajectory give any of them again.
enum class WriteModels : std::uint8_t { automatic, always, never };

struct OutputSection {
  std::filesystem::path folder;   // empty: runs/<deck>-<NNN> in the current folder
  bool folder_by_option = false;  // --set names it, not the deck
  Interval log_every;
  std::optional<std::uint32_t> evaluate_every;  // steps; none: a fifth of the run; 0: at its start and end only
  WriteModels write_models = WriteModels::automatic;
  std::filesystem::path trace_file;  // empty: none
};

/// What the deck's author says a run must reach; compared at its end, a line in the summary.
struct ExpectedSection {
  std::optional<double> accuracy_at_least;
  std::optional<double> final_loss_at_most;
};

struct RunConfig {
  std::filesystem::path deck;  // the file that says all this
  ModelSection model;
  DataSection data;
  ZoSection zo;
  PrecisionSection precision;
  MemorySection memory;
  ParallelSection parallel;
  CheckpointSection checkpoint;
  OutputSection output;
  ExpectedSection expected;
};

/// Reads the deck (YAML, or XML by its extension), applies the options `--set sublist/key=value` in order, fills in the
/// defaults and checks every key and what keys mean to each other. Throws Error(usage), or Error(file) where the deck
/// cannot be read.
RunConfig read_run_config(const std::filesystem::path& deck, const std::vector<std::string>& sets = {});

/// The configuration as a deck that reads back to the same configuration on this machine.
std::string resolved_deck_yaml(const RunConfig& config);

struct KeyValue {
  std::string key;    // "zo/learning rate"
  std::string value;  // as in the resolved deck
  bool operator==(const KeyValue&) const = default;
};

/// The keys that change the sequence of losses or theta, in a fixed order. Of the paths, those of the task and the
/// training data are among them, their file names alone (a run may move); model and data have digests of their own.
std::vector<KeyValue> mathematical_keys(const RunConfig& config);

/// The keys that all ranks of a run must have alike: all but paths, memory, device and threads, which may be each
/// machine's own.
std::vector<KeyValue> keys_of_all_ranks(const RunConfig& config);

/// XXH3-64 of the mathematical keys and values.
std::uint64_t mathematical_digest(const RunConfig& config);

/// "zo/epsilon: 0.001 was 0.01" for each mathematical key in which two configurations differ.
std::vector<std::string> mathematical_differences(const std::vector<KeyValue>& now,
                                                  const std::vector<KeyValue>& before);

/// lr of step t.
double learning_rate(const ZoSection& zo, std::uint32_t t);

/// Steps between two evaluations on the dev set; 0: at the start and the end only.
std::uint32_t evaluation_interval(const RunConfig& config);

}  // namespace distzo2
