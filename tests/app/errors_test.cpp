// SPDX-License-Identifier: BSD-3-Clause
// Whatever is wrong ends in one line on stderr, the right exit code, and no run folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "app/build_info.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// `train` and `validate` both refuse, with these words, and leave no run behind.
void expect_refused(const TinyProject& project, int exit_code, const std::vector<std::string>& parts,
                    const std::vector<std::string>& sets = {}, const ProgramOptions& options = {}) {
  for (const char* command : {"train", "validate"}) {
    SCOPED_TRACE(command);
    std::vector<std::string> words = train_words("deck.yaml", sets);
    words.front() = command;
    expect_one_line(project.run(words, options), exit_code, parts);
    EXPECT_FALSE(fs::exists(project.path("run")));
    EXPECT_FALSE(fs::exists(project.path("runs")));
  }
}

/// The project's deck with one text replaced by another.
void change_file(const TinyProject& project, const std::string& name, const std::string& from, const std::string& to) {
  std::string text = text_of_file(project.path(name));
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  project.write(name, text.replace(at, from.size(), to));
}

TEST(Errors, of_deck_keys_name_file_line_and_key) {
  struct Case {
    std::string from, to;
    std::vector<std::string> parts;
  };
  for (const Case& c : std::vector<Case>{
           {"epsilon:", "epsilom:", {"deck.yaml:12", "epsilom", "\"epsilon\""}},
           {"epsilon:", "Epsilon:", {"deck.yaml:12", "Epsilon", "\"epsilon\""}},
           {"zo:", "Zo:", {"deck.yaml:8", "Zo", "\"zo\""}},
           {"  seed: 7\n", "  seed: 7\n  seed: 8\n", {"deck.yaml:12", "seed"}},
           {"batch: 5", "batch: 0", {"deck.yaml:10", "zo/batch", "0", "1"}},
           {"batch: 5", "batch: 5.5", {"deck.yaml:10", "zo/batch", "5.5"}},
           {"batch: 5", "batch: \"5\"", {"deck.yaml:10", "zo/batch", "5"}},
           {"batch: 5", "batch: -3", {"deck.yaml:10", "zo/batch", "-3"}},
           {"epsilon: 1e-3", "epsilon: 2", {"deck.yaml:12", "zo/epsilon", "2", "1"}},
           {"epsilon: 1e-3", "epsilon: .nan", {"deck.yaml:12", "zo/epsilon"}},
           {"seed: 7", "seed: 18446744073709551616", {"deck.yaml:11", "zo/seed", "18446744073709551616"}},
           {"seed: 7", "seed: -1", {"deck.yaml:11", "zo/seed", "-1"}},
           {"steps: 12", "steps: 12\n  kind: Gaussian", {"deck.yaml:10", "zo/kind", "Gaussian", "gaussian"}},
           {"zo:", "zo: [", {"deck.yaml"}},
           {"zo:", "zo: 3\nzoo:", {"deck.yaml:8", "zo"}},
           {"  task: task.json\n", "", {"deck.yaml", "data/task"}},
           {"  task: task.json", "  task: sst3", {"deck.yaml:4", "data/task", "sst3", "\"sst2\""}},
       }) {
    SCOPED_TRACE(c.to);
    const TinyProject project;
    change_file(project, "deck.yaml", c.from, c.to);
    expect_refused(project, 2, c.parts);
  }
}

TEST(Errors, of_set_options_name_the_key) {
  const TinyProject project;
  expect_refused(project, 2, {"--set", "zo/learning rat", "\"learning rate\""}, {"zo/learning rat=1"});
  expect_refused(project, 2, {"--set", "zo/batch"}, {"zo/batch=many"});
  expect_refused(project, 2, {"zo/steps", "+5"}, {"zo/steps=+5"});
  expect_refused(project, 2, {"parallel/threads", "513", "512"}, {"parallel/threads=513"});
  if (!built_for_device()) expect_refused(project, 2, {"precision/reproducible"}, {"precision/reproducible=false"});
  expect_refused(project, 2, {"data/leading token", "96", "95"}, {"data/leading token=96"});
  expect_refused(project, 2, {"--set"}, {"batch"});
  expect_refused(project, 2, {"zo/warm-up", "12"}, {"zo/warm-up=12"});
  expect_refused(project, 2, {"data/test"}, {"data/test=train.tsv"});
}

TEST(Errors, of_missing_things_name_them) {
  const TinyProject project;
  expect_one_line(project.run({"train", "none.yaml"}), 3, {"none.yaml"});
  expect_one_line(project.run({"train", "model"}), 3, {"model"});
  expect_refused(project, 3, {(project.path("nowhere")).string()}, {"model/folder=nowhere"});
  expect_refused(project, 3, {"none.json"}, {"data/task=none.json"});
  expect_refused(project, 3, {"none.tsv"}, {"data/train=none.tsv"});
  expect_refused(project, 3, {"none.tsv"}, {"data/dev=none.tsv"});
  expect_refused(project, 2, {"data/train", "DISTZO2_TEST_NOT_SET"}, {"data/train=${DISTZO2_TEST_NOT_SET}/train.tsv"},
                 {.environment = {"DISTZO2_TEST_NOT_SET"}});
  expect_refused(project, 2, {"data/train examples", "41", "40"}, {"data/train examples=41"});
  const ProgramResult untrained = project.train({"data/train="});
  expect_one_line(untrained, 2, {"deck.yaml: data/train: is missing", "a path"});
  EXPECT_EQ(untrained.err.find("zo/steps"), std::string::npos) << untrained.err;
  EXPECT_EQ(project.run({"validate", "deck.yaml", "--set", "data/train=", "--set", "data/dev="}).exit_code, 0);
  expect_refused(project, 2, {"zo/steps", "has no value"}, {"zo/steps="});
  fs::remove(project.path("model/tokenizer.json"));
  expect_refused(project, 3, {"tokenizer.json"});
  change_file(project, "deck.yaml", "  train: train.tsv\n", "");
  expect_one_line(project.train(), 2, {"deck.yaml", "data/train"});
}

TEST(Errors, of_model_folders_name_the_file) {
  const TinyProject project;
  const std::string weights = text_of_file(project.path("model/model.safetensors"));
  const std::string config = text_of_file(project.path("model/config.json"));
  const auto with_weights = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    project.write("model/model.safetensors", bytes);
    expect_refused(project, 3, parts);
  };
  with_weights(weights.substr(0, weights.size() - 1), {"model.safetensors"});
  with_weights(weights.substr(0, 100), {"model.safetensors"});
  with_weights("", {"model.safetensors"});
  with_weights(std::string(8, '\xff') + weights.substr(8), {"model.safetensors"});
  fs::remove(project.path("model/model.safetensors"));
  expect_refused(project, 3, {"safetensors"});
  project.write("model/pytorch_model.bin", "pickled");
  expect_refused(project, 3, {".bin", "scripts/convert_checkpoint"});
  project.write("model/model.safetensors.index.json",
                R"({"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}})");
  expect_refused(project, 3, {"model-00001-of-00002.safetensors"});
  fs::remove(project.path("model/model.safetensors.index.json"));
  project.write("model/model.safetensors", weights);

  change_file(project, "model/config.json", "LlamaForCausalLM", "MambaForCausalLM");
  expect_refused(project, 3, {"config.json", "MambaForCausalLM", "LlamaForCausalLM"});
  project.write("model/config.json", config);
  change_file(project, "model/config.json", "\"intermediate_size\": 40", "\"intermediate_size\": 48");
  expect_refused(project, 3, {"model.safetensors", "mlp"});
  project.write("model/config.json", "{");
  expect_refused(project, 3, {"config.json"});
}

TEST(Errors, of_another_family_than_the_folders_name_the_decks_line) {
  const TinyProject project;
  expect_refused(project, 2, {"--set", "model/family: opt", project.path("model").string(), "accepted: llama, or auto"},
                 {"model/family=opt"});
  change_file(project, "deck.yaml", "  folder: model\n", "  folder: model\n  family: qwen3\n");
  expect_refused(project, 2, {"deck.yaml:3: model/family: qwen3", "accepted: llama, or auto"});
}

TEST(Errors, of_tensors_that_the_model_has_no_place_for_name_them) {
  const TinyProject project("llama_untied");
  change_file(project, "model/config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  expect_refused(project, 3, {"model.layers.1.", "LlamaForCausalLM"});
  expect_one_line(project.run({"inspect", "model"}), 3, {"model.layers.1."});
  expect_one_line(project.run({"evaluate", "deck.yaml"}), 3, {"model.layers.1."});
  change_file(project, "model/config.json", "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2");
  change_file(project, "model/config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  expect_refused(project, 3, {"lm_head.weight", "tie_word_embeddings"});
}

TEST(Errors, of_weights_that_are_not_finite_name_the_tensor) {
  const TinyProject project;
  std::string weights = text_of_file(project.path("model/model.safetensors"));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::memcpy(weights.data() + weights.size() - 4, &bad, 4);
    project.write("model/model.safetensors", weights);
    const std::vector<std::string> parts{"model.safetensors", "element 31 of tensor \"model.norm.weight\"",
                                         "model/allow non-finite weights"};
    expect_refused(project, 3, parts);
    const ProgramResult evaluation = project.run({"evaluate", "deck.yaml"});
    expect_one_line(evaluation, 3, parts);
    EXPECT_EQ(evaluation.out.find("accuracy"), std::string::npos) << evaluation.out;
  }
  const std::vector<std::string> allowed{"--set", "model/allow non-finite weights=true"};
  EXPECT_EQ(project.run({"validate", "deck.yaml", allowed[0], allowed[1]}).exit_code, 0);
  expect_one_line(project.run({"evaluate", "deck.yaml", allowed[0], allowed[1]}), 4,
                  {"test.tsv, line 2", "not all finite"});
}

TEST(Errors, of_predictions_leave_what_the_evaluation_reads) {
  const TinyProject project;
  const auto evaluate = [&](const std::string& file) {
    return project.run({"evaluate", "deck.yaml", "--predictions", file});
  };
  for (const char* file : {"deck.yaml", "task.json", "test.tsv", "./train.tsv", "model/config.json",
                           "model/model.safetensors", "model/../dev.tsv"}) {
    const std::string before = text_of_file(project.path(file));
    expect_one_line(evaluate(file), 2, {"--predictions", file});
    EXPECT_EQ(text_of_file(project.path(file)), before);
  }
  expect_one_line(evaluate("model"), 2, {"--predictions", "model"});
  project.trained();
  for (const char* file : {"run/metrics.jsonl", "run/summary.json", "run/trajectory.zoj", "run/final/config.json"}) {
    const std::string before = text_of_file(project.path(file));
    expect_one_line(evaluate(file), 2, {"--predictions", file, "does not hold predictions"});
    EXPECT_EQ(text_of_file(project.path(file)), before);
  }
  project.write("kept.jsonl", "");
  fs::create_symlink(project.path("kept.jsonl"), project.path("link.jsonl"));
  for (const char* file : {"new.jsonl", "link.jsonl", "new.jsonl"}) {  // older ones are replaced
    EXPECT_EQ(evaluate(file).exit_code, 0);
    const std::string text = text_of_file(project.path(file));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  }
  EXPECT_TRUE(fs::is_symlink(project.path("link.jsonl")));
  EXPECT_EQ(text_of_file(project.path("kept.jsonl")), text_of_file(project.path("new.jsonl")));
}

TEST(Errors, of_a_timeline_leave_what_the_run_reads_and_writes) {
  const TinyProject project;
  project.write("notes.txt", "the user's");
  for (const char* file : {"deck.yaml", "task.json", "train.tsv", "model/../dev.tsv", "test.tsv", "model/config.json",
                           "model/model.safetensors", "notes.txt"}) {
    SCOPED_TRACE(file);
    const std::string before = text_of_file(project.path(file));
    expect_refused(project, 2, {"output/trace file", fs::path(file).filename().string()},
                   {std::string("output/trace file=") + file});
    EXPECT_EQ(text_of_file(project.path(file)), before);
  }
  for (const auto& [file, part] : {std::pair{"model/trace.json", "lies in the model's folder"},
                                   {"run/trajectory.zoj", "the run itself writes"},
                                   {"run/metrics.jsonl", "the run itself writes"},
                                   {"model", "lies in the model's folder"},
                                   {"none/trace.json", "does not exist"},
                                   {"notes.txt", "does not hold a timeline"}})
    expect_refused(project, 2, {"output/trace file", part}, {std::string("output/trace file=") + file});
  expect_refused(project, 2, {"output/trace file", "the run itself writes"},
                 {"output/folder=", "output/trace file=runs/deck-001/trajectory.zoj"});
  expect_refused(project, 2, {"memory/scratch folder", "lies in the model's folder"},
                 {"memory/scratch folder=model/scratch"});
  // Of an older run a timeline is replaced; in the run's own folder there is room for one.
  for (const char* folder : {"a", "b"})
    project.trained({"memory/staging=always", "output/trace file=trace.json", std::string("output/folder=") + folder});
  project.trained({"memory/staging=always", "output/trace file=c/trace.json", "output/folder=c"});
  EXPECT_TRUE(fs::exists(project.path("c/trace.json")));
}

TEST(Errors, of_tasks_and_data_name_the_field) {
  const TinyProject project;
  change_file(project, "task.json", "{sentence}", "{phrase}");
  expect_refused(project, 3, {"phrase", "train.tsv", "sentence"});
  change_file(project, "task.json", "{phrase}", "{sentence}");
  change_file(project, "train.tsv", "\t1\n", "\t7\n");
  expect_refused(project, 3, {"train.tsv, line 3", "\"7\"", "\"0\""});
  change_file(project, "train.tsv", "\t7\n", "\n");
  expect_refused(project, 3, {"train.tsv, line 3"});
  project.write("train.tsv", "");
  expect_refused(project, 3, {"train.tsv"});
}

TEST(Errors, of_a_tokenizer_with_more_tokens_than_the_model_has) {
  for (const char* text : {"{sentence}:", "{sentence}"}) {  // beyond it in the prompt, or in an answer alone
    const TinyProject project;
    change_file(project, "model/tokenizer.json", "\":\":26", "\":\":96");
    change_file(project, "task.json", "{sentence}: {label}", std::string(text) + " {label}");
    change_file(project, "task.json", "yes", "y:es");
    expect_refused(project, 3, {"token id 96", "96"});
  }
  const TinyProject project;  // no text here holds the character
  change_file(project, "model/tokenizer.json", "\"@\":32", "\"@\":96");
  expect_refused(project, 3,
                 {"tokenizer.json: key \"model.vocab\": token id 96 (\"@\")", "96 embedding rows", "ids from 0 to 95"});
}

TEST(Errors, of_added_tokens_that_the_model_lacks_are_of_texts_that_hold_one) {
  const TinyProject project;  // as a padding token that was added later
  change_file(project, "model/tokenizer.json", "\"added_tokens\":[]",
              R"("added_tokens":[{"id":96,"content":"<pad>","special":true}])");
  project.trained();
  change_file(project, "test.tsv", "row 52", "<pad> 52");
  fs::remove_all(project.path("run"));
  expect_refused(project, 3, {"test.tsv", "token id 96", "96 embedding rows"});
}

TEST(Errors, of_output_folders_leave_what_is_there) {
  const TinyProject project;
  project.trained();
  const std::string trajectory = text_of_file(project.path("run/trajectory.zoj"));
  expect_one_line(project.train(), 2, {"output/folder", "run", "--resume auto"});
  EXPECT_EQ(text_of_file(project.path("run/trajectory.zoj")), trajectory);
  for (const char* inside : {"model", "model/run", "run/../model/new/run"}) {
    expect_one_line(project.train({std::string("output/folder=") + inside}), 2, {"output/folder", "model"});
  }
  EXPECT_FALSE(fs::exists(project.path("model/run")));
  EXPECT_FALSE(fs::exists(project.path("model/trajectory.zoj")));
  EXPECT_FALSE(fs::exists(project.path("model/new")));
  expect_one_line(project.train({"output/folder=."}), 2, {"output/folder", "model"});
  fs::create_directory_symlink(project.path("model"), project.path("link"));
  expect_one_line(project.train({"output/folder=link/run"}), 2, {"output/folder", "model"});
  fs::create_directory(project.path("fresh"));
  fs::copy(project.path("run/final"), project.path("fresh/final"));
  expect_one_line(project.train({"output/folder=fresh", "model/folder=fresh/final"}), 2,
                  {"output/folder", "fresh/final"});
  project.write("data/train.tsv", text_of_file(project.path("train.tsv")));
  expect_one_line(project.train({"output/folder=data", "data/train=data/train.tsv"}), 2,
                  {"output/folder", "data/train.tsv"});
  project.write("file", "");
  expect_one_line(project.train({"output/folder=file/run"}), 3, {"file/run"});
  expect_one_line(project.train({"output/folder=file"}), 2, {"output/folder", "file is no folder"});
  expect_one_line(project.train({"output/folder=/proc/run"}), 3, {"/proc/run"});
}

TEST(Errors, of_the_command_line_say_what_there_is) {
  const TinyProject project;
  expect_one_line(project.run({}), 2, {"--help"});
  expect_one_line(project.run({"trian", "deck.yaml"}), 2, {"trian", "\"train\"", "validate"});
  if (!built_for_device())
    expect_one_line(project.run({"device"}), 2,
                    {"\"device\" in a program for CPUs; one that is built for GPUs has it"});
  expect_one_line(project.run({"train"}), 2, {"deck", "--help"});
  expect_one_line(project.run({"train", "deck.yaml", "--resum", "auto"}), 2, {"--resum"});
  expect_one_line(project.run({"train", "deck.yaml", "--resume", "never"}), 2, {"--resume", "auto"});
  expect_one_line(project.run({"train", "deck.yaml", "--set"}), 2, {"--set"});
  expect_one_line(project.run({"bench"}), 2, {"--help"});
  expect_one_line(project.run({"bench", "stpe", "deck.yaml"}), 2, {"stpe", "\"step\""});
  expect_one_line(project.run({"bench", "step", "deck.yaml", "--repeats", "0"}), 2, {"--repeats"});
  expect_one_line(project.run({"train", "deck.yaml"}, {.environment = {"DISTZO2_ISA=sse2"}}), 2,
                  {"DISTZO2_ISA", "sse2", "avx2"});
  EXPECT_FALSE(fs::exists(project.path("run")));
}

TEST(Errors, of_export_and_inspect) {
  const TinyProject project;
  project.trained();
  expect_one_line(project.run({"export", "--trajectory", "none", "--output", "x"}), 3, {"none"});
  expect_one_line(project.run({"export", "--trajectory", "run", "--output", "model"}), 2, {"--output", "model"});
  expect_one_line(project.run({"export", "--trajectory", "run", "--output", "model/x"}), 2, {"--output", "model"});
  for (const char* step : {"13", "4294967308"})  // the latter is 12 in 32 bits
    expect_one_line(project.run({"export", "--trajectory", "run", "--step", step, "--output", "x"}), 2,
                    {std::string("--step ") + step, "12 steps", "accepted: 0 to 12"});
  for (const char* step : {"-1", "1.5", "99999999999999999999", "one"})
    expect_one_line(project.run({"export", "--trajectory", "run", "--step", step, "--output", "x"}), 2,
                    {"--step", step, "accepted: 0 to the number of steps"});
  const TinyProject other("llama_untied");
  expect_one_line(
      project.run({"export", "--trajectory", "run", "--model", other.path("model").string(), "--output", "x"}), 3,
      {"weights"});
  fs::create_directory(project.path("alone"));
  fs::copy_file(project.path("run/trajectory.zoj"), project.path("alone/t.zoj"));
  expect_one_line(project.run({"export", "--trajectory", "alone/t.zoj", "--output", "x"}), 2, {"--model"});
  EXPECT_FALSE(fs::exists(project.path("x")));
  expect_one_line(project.run({"inspect", "none"}), 3, {"none"});
  expect_one_line(project.run({"inspect", "deck.yaml"}), 3, {"deck.yaml", "trajectory"});
  fs::create_directory(project.path("empty"));
  expect_one_line(project.run({"inspect", "empty"}), 3, {"empty"});
}

TEST(Errors, of_an_output_that_takes_nothing_are_not_passed_over) {
  const TinyProject project;
  const ProgramOptions full{.wrapper = {"sh", "-c", "exec \"$0\" \"$@\" > /dev/full"}};
  expect_one_line(project.run({"evaluate", "deck.yaml", "--json"}, full), 3, {"what the command prints"});
  expect_one_line(project.run({"deck-docs"}, full), 3, {"what the command prints"});
  expect_one_line(project.run({"train", "deck.yaml"}, full), 3, {"what the command prints"});
  EXPECT_TRUE(fs::exists(project.path("run/summary.json")));  // a log that cannot be written ends no run
}

TEST(GoodCommands, say_nothing_on_stderr) {
  const TinyProject project;
  for (const char* environment :
       {"OMP_PROC_BIND", "OMP_PROC_BIND=spread", "OMP_PROC_BIND=false", "OMP_NUM_THREADS=2", "KOKKOS_NUM_THREADS=2"}) {
    fs::remove_all(project.path("run"));
    project.trained({}, {}, {.environment = {environment}});
  }
  project.trained({"precision/storage=bf16", "precision/compute=bf16", "output/folder=bf16"});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"evaluate", "deck.yaml"},
                                             {"validate", "deck.yaml"},
                                             {"inspect", "run"},
                                             {"inspect", "run/trajectory.zoj", "--json"},
                                             {"inspect", "model"},
                                             {"export", "--trajectory", "run", "--step", "3", "--output", "theta3"},
                                             {"verify", "run"},
                                             {"deck-docs"},
                                             {"deck-docs", "--starter"},
                                             {"bench", "step", "deck.yaml", "--repeats", "1", "--noise-pairs", "1"},
                                             {"--help"},
                                             {"train", "--help"},
                                             {"--version"}}) {
    const ProgramResult result = project.run(words);
    EXPECT_EQ(result.exit_code, 0) << words.front();
    EXPECT_EQ(result.err, "") << words.front();
    EXPECT_NE(result.out, "") << words.front();
  }
}

}  // namespace
}  // namespace distzo2
