// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "app/build_info.hpp"
#include "app/find_task.hpp"
#include "io/deck.hpp"
#include "test_paths.hpp"
#include "tests/support/deck_files.hpp"

namespace distzo2 {
namespace {

class RunConfigTest : public ::testing::Test {
protected:
  RunConfigTest() { folder_.write("tasks/films.json", "{}"); }
  RunConfig read(const std::string& rest, const std::vector<std::string>& sets = {}) {
    return read_run_config(folder_.write("deck.yaml", head_ + rest), sets);
  }
  std::string error(const std::string& rest, const std::vector<std::string>& sets = {}) {
    return error_of([&] { read(rest, sets); }, folder_.path());
  }
  DeckFolder folder_;
  std::string head_ = "model: {folder: m}\ndata: {task: films, train: train.tsv}\n";
};

TEST_F(RunConfigTest, the_least_deck_has_mezo_defaults) {
  const RunConfig c = read("");
  EXPECT_EQ(c.model.folder, folder_.path() / "m");
  EXPECT_EQ(c.data.task, folder_.path() / "tasks/films.json");
  EXPECT_EQ(c.data.train, folder_.path() / "train.tsv");
  EXPECT_TRUE(c.data.dev.empty());
  EXPECT_FALSE(c.data.train_examples.has_value());
  EXPECT_FALSE(c.data.dev_examples.has_value());
  EXPECT_EQ(c.data.leading_token, LeadingToken{});
  EXPECT_FALSE(c.zo.objective.has_value());
  EXPECT_EQ(c.zo.steps, 20000u);
  EXPECT_EQ(c.zo.batch, 16u);
  EXPECT_EQ(c.zo.epsilon, 1e-3);
  EXPECT_EQ(c.zo.learning_rate, 1e-6);
  EXPECT_EQ(c.zo.directions, 1u);
  EXPECT_EQ(c.zo.diverged_factor, 3.0);
  EXPECT_EQ(c.precision.storage, Storage::fp32);
  EXPECT_EQ(c.precision.compute, Compute::fp32);
  EXPECT_FALSE(c.parallel.threads.has_value());
  EXPECT_EQ(c.parallel.pertp, 1u);
  EXPECT_FALSE(c.parallel.ddp.has_value());
  EXPECT_EQ(c.parallel.order, PertpOrder::inner);
  EXPECT_EQ(c.parallel.slices, Slices::automatic);
  EXPECT_EQ(c.parallel.shared_memory_folder, "");
  EXPECT_EQ(c.parallel.timeout_s, 120.0);
  EXPECT_FALSE(c.parallel.check_every.has_value());
  EXPECT_EQ(c.checkpoint.trajectory_sync_s, 1.0);
  EXPECT_FALSE(c.checkpoint.time_limit_s.has_value());
  EXPECT_EQ(c.output.log_every, (Interval{0, 10.0}));
  EXPECT_EQ(evaluation_interval(c), 4000u);
  EXPECT_FALSE(c.expected.accuracy_at_least.has_value());
}

/// Every key away from its default.
const char* const every_key = R"(
model:
  folder: ../m
  allow non-finite weights: true
data:
  task: films
  train: "täin\n.tsv"
  dev: dev.tsv
  test: test.jsonl
  train examples: 1000
  dev examples: 500
  split seed: 18446744073709551615
  max length: 256
  leading token: 0
  truncate: false
zo:
  objective: language model
  steps: 1200
  batch: 32
  seed: 1234567890123
  epsilon: 0.01
  directions: 4
  kind: rademacher
  difference: forward
  learning rate: 4e-5
  schedule: cosine
  warm-up: 100
  weight decay: 0.1
  clip: 5
  diverged factor: 0
  non-finite: stop
precision:
  storage: fp16
  compute: bf16
  rounding: nearest
  round every: 4
  reproducible: true
memory:
  device budget: 1.5 GiB
  host budget: 8 GB
  scratch folder: /scratch
  staging: always
  groups: off
  write back every: 8
  buffers: 3
  keep store: true
  scratch persistent: true
parallel:
  pertp: 5
  ddp: 2
  order: ddp inner
  slices: off
  shared memory folder: window
  timeout: 3 min
  consistency check every: 50
  threads: 3
checkpoint:
  trajectory sync: 250 ms
  time limit: 11:30:00
output:
  folder: out
  log every: 5
  evaluate every: 50
  write models: never
expected:
  accuracy at least: 0.9
  final loss at most: 0.4
)";

TEST_F(RunConfigTest, every_key_reaches_its_field) {
  head_.clear();
  const RunConfig c = read(every_key);
  EXPECT_EQ(c.model.folder, folder_.path().parent_path() / "m");
  EXPECT_TRUE(c.model.allow_non_finite_weights);
  EXPECT_EQ(c.data.train.filename().string(), "t\xC3\xA4in\n.tsv");
  EXPECT_EQ(c.data.test, folder_.path() / "test.jsonl");
  EXPECT_EQ(c.data.train_examples, 1000u);
  EXPECT_EQ(c.data.dev_examples, 500u);
  EXPECT_EQ(c.data.split_seed, UINT64_MAX);
  EXPECT_EQ(c.data.max_length, 256u);
  EXPECT_EQ(c.data.leading_token, (LeadingToken{LeadingToken::Kind::id, 0}));
  EXPECT_FALSE(c.data.truncate);
  EXPECT_EQ(c.zo.objective, Objective::language_model);
  EXPECT_EQ(c.zo.steps, 1200u);
  EXPECT_EQ(c.zo.batch, 32u);
  EXPECT_EQ(c.zo.seed, 1234567890123u);
  EXPECT_EQ(c.zo.epsilon, 0.01);
  EXPECT_EQ(c.zo.directions, 4u);
  EXPECT_EQ(c.zo.kind, DirectionKind::rademacher);
  EXPECT_EQ(c.zo.difference, Difference::forward);
  EXPECT_EQ(c.zo.learning_rate, 4e-5);
  EXPECT_EQ(c.zo.schedule, Schedule::cosine);
  EXPECT_EQ(c.zo.warm_up, 100u);
  EXPECT_EQ(c.zo.weight_decay, 0.1);
  EXPECT_EQ(c.zo.clip, 5.0);
  EXPECT_EQ(c.zo.diverged_factor, 0.0);
  EXPECT_EQ(c.zo.non_finite, NonFinite::stop);
  EXPECT_EQ(c.precision.storage, Storage::fp16);
  EXPECT_EQ(c.precision.compute, Compute::bf16);
  EXPECT_EQ(c.precision.rounding, Rounding::nearest);
  EXPECT_EQ(c.precision.round_every, 4u);
  EXPECT_TRUE(c.precision.reproducible);
  EXPECT_EQ(c.memory.device_budget, (ByteCount{1610612736}));
  EXPECT_EQ(c.memory.host_budget, (ByteCount{8000000000}));
  EXPECT_EQ(c.memory.scratch_folder, "/scratch");
  EXPECT_EQ(c.memory.staging, Staging::always);
  EXPECT_EQ(c.memory.groups, Groups::off);
  EXPECT_EQ(c.memory.write_back_every, 8u);
  EXPECT_EQ(c.memory.buffers, 3u);
  EXPECT_TRUE(c.memory.keep_store);
  EXPECT_TRUE(c.memory.scratch_persistent);
  EXPECT_EQ(c.parallel.pertp, 5u);
  EXPECT_EQ(c.parallel.ddp, 2u);
  EXPECT_EQ(c.parallel.order, PertpOrder::outer);
  EXPECT_EQ(c.parallel.slices, Slices::off);
  EXPECT_EQ(c.parallel.shared_memory_folder.filename(), "window");
  EXPECT_EQ(c.parallel.timeout_s, 180.0);
  EXPECT_EQ(c.parallel.check_every, 50u);
  EXPECT_EQ(c.parallel.threads, 3u);
  EXPECT_EQ(c.checkpoint.trajectory_sync_s, 0.25);
  EXPECT_EQ(c.checkpoint.time_limit_s, 41400.0);
  EXPECT_EQ(c.output.folder, folder_.path() / "out");
  EXPECT_EQ(c.output.log_every, (Interval{5, 0.0}));
  EXPECT_EQ(c.output.evaluate_every, 50u);
  EXPECT_EQ(c.output.write_models, WriteModels::never);
  EXPECT_EQ(c.expected.accuracy_at_least, 0.9);
  EXPECT_EQ(c.expected.final_loss_at_most, 0.4);
  EXPECT_EQ(learning_rate(c.zo, 50), 2e-5);
}

TEST_F(RunConfigTest, the_resolved_deck_is_the_same_configuration_anywhere) {
  const DeckFolder other;
  for (const std::string& text : {std::string(every_key), head_}) {
    head_.clear();
    const std::string resolved = resolved_deck_yaml(read(text));
    const RunConfig again = read_run_config(other.write("deck.yaml", resolved));
    EXPECT_EQ(resolved_deck_yaml(again), resolved);
    EXPECT_EQ(mathematical_keys(again), mathematical_keys(read(text)));
  }
  head_.clear();
  const std::string resolved = resolved_deck_yaml(read(every_key));
  expect_parts(resolved, "seed: 1234567890123\n", "learning rate: 4e-05\n", "time limit: 41400 s\n",
               "task: \"" + (folder_.path() / "tasks/films.json").string() + "\"\n", "objective: language model\n");
}

TEST_F(RunConfigTest, keys_that_contradict_each_other_are_refused) {
  head_ = "model: {folder: m}\n";
  expect_parts(error("data: {task: films}\n"), "deck.yaml: data: names no data", "train, dev, test");
  expect_parts(error("data:\n  task: films\n  train: a.tsv\n  test: x/../a.tsv\n"), "deck.yaml:5: data/test",
               "never used for training");
  expect_parts(error("data: {task: films, train: a.tsv, dev: b.tsv, test: b.tsv}\n"), "data/test");
  expect_parts(error("data: {task: films, train: a.tsv, dev: a.tsv}\n"), "data/dev", "\"dev examples\"");
  expect_parts(error("data: {task: films, test: a.tsv, dev examples: 5}\n"), "data/dev examples", "neither");
  head_ = "model: {folder: m}\ndata: {task: films, train: t.tsv}\n";
  expect_parts(error("zo:\n  steps: 10\n  warm-up: 10\n"), "deck.yaml:5: zo/warm-up", "less than steps");
  expect_parts(error("zo: {steps: 10}\n", {"zo/warm-up=11"}), "--set \"zo/warm-up=11\": zo/warm-up");
  expect_parts(error("zo: {learning rate: 0.5, weight decay: 2}\n"), "zo/weight decay", "not below 1");
  expect_parts(error("zo: {diverged factor: 0.5}\n"), "zo/diverged factor", "above 1");
  expect_parts(error("precision: {round every: 4}\n"), "precision/round every", "fp32");
  EXPECT_EQ(read("precision: {round every: 4, storage: bf16}\n").precision.round_every, 4u);
  expect_parts(error("precision: {round every: 4, storage: bf16}\nmemory: {write back every: 6}\n"),
               "memory/write back every: 6 is no multiple of precision/round every, 4");
  if (!built_for_device()) {
    expect_parts(error("memory: {device budget: 1 GiB}\n"), "memory/device budget", "memory/host budget",
                 "staging: always");
    expect_parts(error("precision: {reproducible: false}\n"), "precision/reproducible", "CPUs");
  } else {
    EXPECT_FALSE(read("precision: {reproducible: false}\n").precision.reproducible);
  }
}

TEST_F(RunConfigTest, a_model_comes_from_a_folder_or_from_a_shape) {
  head_ = "data: {task: random tokens, sequence length: 64, train examples: 3}\n";
  const RunConfig c = read("model: {family: opt, shape: opt-13b, weights: random, seed: 1, tied head: false}\n");
  EXPECT_EQ(c.model.shape, "opt-13b");
  EXPECT_TRUE(c.model.folder.empty());
  EXPECT_EQ(c.model.family, FamilyKind::opt);
  EXPECT_TRUE(c.model.random());
  EXPECT_EQ(c.model.seed, 1u);
  EXPECT_EQ(c.model.tied_head, false);
  EXPECT_TRUE(c.data.random_tokens());
  EXPECT_EQ(c.data.sequence_length, 64u);
  const DeckFolder other;
  const std::string resolved = resolved_deck_yaml(c);
  EXPECT_EQ(resolved_deck_yaml(read_run_config(other.write("deck.yaml", resolved))), resolved);
  EXPECT_EQ(mathematical_differences(mathematical_keys(read("model: {shape: opt-13b, weights: random, seed: 2}\n")),
                                     mathematical_keys(c)),
            (std::vector<std::string>{"model/seed: 2 was 1", "model/tied head: auto was false"}));

  expect_parts(error("zo: {steps: 3}\n"), "deck.yaml: model/folder: is missing", "model/shape with weights: random");
  expect_parts(error("model: {folder: m, shape: opt-13b, weights: random}\n"), "deck.yaml:2: model/shape",
               "beside model/folder", "one of the two");
  expect_parts(error("model: {folder: m, weights: random}\n"), "model/weights: is for a model without a folder");
  expect_parts(error("model: {folder: m, seed: 3}\n"), "model/seed: is for a model without a folder");
  expect_parts(error("model: {shape: opt-13b}\n"), "model/weights", "random");
  expect_parts(error("model: {shape: opt-31b, weights: random}\n"), "model/shape", "did you mean \"opt-13b\"?");
  expect_parts(error("model: {shape: opt-13b, weights: random, family: llama}\n"), "model/family",
               "opt-13b is of the family opt");
  expect_parts(error("model: {shape: opt-13b, weights: random}\noutput: {write models: always}\n"),
               "output/write models", "without a folder");
  head_ = "model: {shape: opt-13b, weights: random}\n";
  expect_parts(error("data: {task: films, train: a.tsv}\n"), "deck.yaml:2: data/task", "no tokenizer", "random tokens");
}

TEST_F(RunConfigTest, random_tokens_come_from_no_file) {
  head_ = "model: {folder: m}\n";
  EXPECT_TRUE(read("data: {task: random tokens}\n").data.trains());
  expect_parts(error("data: {task: random tokens, train: a.tsv}\n"), "data/train: random tokens come from no file");
  expect_parts(error("data: {task: random tokens, dev examples: 4}\n"), "data/dev examples", "no dev set");
  expect_parts(error("data: {task: random tokens}\nzo: {objective: classification}\n"), "zo/objective",
               "language model");
  expect_parts(error("data: {task: random token}\n"), "did you mean \"random tokens\"?");
  expect_parts(error("data: {task: films, train: a.tsv, sequence length: 4}\n"), "data/sequence length",
               "data/max length");
}

TEST_F(RunConfigTest, an_unknown_task_is_refused_with_those_there_are) {
  head_ = "model: {folder: m}\n";
  expect_parts(error("data: {task: filsm, train: t.tsv}\n"), "deck.yaml:2: data/task: there is no task \"filsm\"",
               "did you mean \"films\"?");
  EXPECT_EQ(read("data: {task: ./own.json, train: t.tsv}\n").data.task, folder_.path() / "own.json");
  EXPECT_EQ(task_folders(folder_.path() / "deck.yaml").front(), folder_.path() / "tasks");
}

TEST_F(RunConfigTest, a_layout_that_fits_no_number_of_ranks_is_refused_with_the_arithmetic) {
  expect_parts(error("parallel: {pertp: 3}\n"),
               "parallel/pertp: ", "pertp 3 does not divide the step's 2 evaluations; pertp 2 does");
  expect_parts(error("zo: {batch: 4, directions: 2, difference: forward}\nparallel: {pertp: 2}\n"),
               "parallel/pertp: ", "pertp 2 does not divide the step's 3 evaluations; pertp 1 does");
  expect_parts(error("zo: {batch: 4}\nparallel: {ddp: 6}\n"), "parallel/ddp: ", "ddp 6 exceeds the batch of 4");
  EXPECT_EQ(read("zo: {batch: 6, directions: 3}\nparallel: {pertp: 6, ddp: 6}\n").parallel.pertp, 6u);
}

TEST_F(RunConfigTest, the_mathematical_keys_are_those_that_change_the_steps) {
  const RunConfig base = read("");
  const auto changes = [&](const std::vector<std::string>& sets) {
    const RunConfig c = read("", sets);
    const auto differences = mathematical_differences(mathematical_keys(c), mathematical_keys(base));
    EXPECT_EQ(differences.empty(), mathematical_digest(c) == mathematical_digest(base));
    return differences;
  };
  for (const char* free :
       {"zo/steps=100", "model/folder=/elsewhere", "data/train=/moved/train.tsv", "data/dev=d.tsv",
        "parallel/threads=2", "parallel/pertp=2", "parallel/ddp=3", "parallel/timeout=9 s",
        "parallel/consistency check every=4", "parallel/slices=off", "output/log every=3", "zo/diverged factor=0",
        "output/folder=x", "checkpoint/time limit=1 h", "memory/host budget=1 GiB", "memory/write back every=4",
        "expected/accuracy at least=0.9", "data/dev examples=0"}) {
    EXPECT_TRUE(changes({free}).empty()) << free;
  }
  for (const char* bound : {"data/train=other.tsv",
                            "data/train examples=10",
                            "data/split seed=1",
                            "data/max length=100",
                            "data/leading token=none",
                            "zo/objective=classification",
                            "zo/batch=8",
                            "zo/seed=1",
                            "zo/epsilon=1e-2",
                            "zo/directions=2",
                            "zo/kind=rademacher",
                            "zo/difference=forward",
                            "zo/learning rate=1e-5",
                            "zo/warm-up=5",
                            "zo/weight decay=0.1",
                            "zo/clip=2",
                            "zo/non-finite=stop",
                            "precision/storage=bf16",
                            "precision/compute=bf16",
                            "precision/rounding=nearest",
                            "data/dev examples=10"}) {
    EXPECT_EQ(changes({bound}).size(), 1u) << bound;
  }
  EXPECT_EQ(changes({"zo/epsilon=1e-2"}), std::vector<std::string>{"zo/epsilon: 0.01 was 0.001"});
  // With the schedule the number of steps comes to count, or counts no more: nobody gave it or left it out.
  EXPECT_EQ(changes({"zo/schedule=linear"}), std::vector<std::string>{"zo/schedule: linear was constant"});
  const RunConfig linear = read("", {"zo/schedule=linear"});
  EXPECT_EQ(mathematical_differences(mathematical_keys(base), mathematical_keys(linear)),
            std::vector<std::string>{"zo/schedule: constant was linear"});
  EXPECT_EQ(mathematical_differences(mathematical_keys(read("", {"zo/schedule=linear", "zo/steps=77"})),
                                     mathematical_keys(linear))
                .size(),
            1U);
}

TEST(Inputs, the_decks_of_the_project_are_valid) {
  const std::filesystem::path inputs = test_paths::sources / "inputs";
  const RunConfig demo = read_run_config(inputs / "quickstart.yaml");
  EXPECT_EQ(demo.model.folder, inputs / "demo/model");
  EXPECT_EQ(demo.data.task, inputs / "tasks/reviews.json");
  unsetenv("SST2");
  expect_parts(error_of([&] { read_run_config(inputs / "smollm2_sst2.yaml"); }), "data/train", "${SST2} is not set");
  setenv("SST2", "/data/sst2", 1);
  const RunConfig sst2 = read_run_config(inputs / "smollm2_sst2.yaml");
  EXPECT_EQ(sst2.data.test, "/data/sst2/validation.tsv");
  EXPECT_EQ(sst2.model.folder, inputs.parent_path() / "models/smollm2-135m-instruct");
}

TEST(Inputs, the_documented_keys_are_those_of_the_valid_list) {
  std::ifstream in(test_paths::sources / "docs/deck.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(text == deck_reference()) << "write docs/deck.md anew: distzo2 deck-docs > docs/deck.md";
}

TEST_F(RunConfigTest, evaluation_is_every_fifth_of_a_run) {
  EXPECT_EQ(evaluation_interval(read("zo: {steps: 3}\n")), 1u);
  EXPECT_EQ(evaluation_interval(read("zo: {steps: 1200}\n")), 240u);
  EXPECT_EQ(evaluation_interval(read("output: {evaluate every: 0}\n")), 0u);
}

}  // namespace
}  // namespace distzo2
