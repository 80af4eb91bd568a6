// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/tiny_project.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "test_paths.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* tiny_deck = R"(model:
  folder: model
data:
  task: task.json
  train: train.tsv
  dev: dev.tsv
  test: test.tsv
zo:
  steps: 12
  batch: 5
  seed: 7
  epsilon: 1e-3
  learning rate: 1e-3
output:
  folder: run
  evaluate every: 5
)";

constexpr const char* task = R"({
  "name": "tiny",
  "template": "{sentence}: {label}",
  "labels": [{"value": "0", "word": "no"}, {"value": "1", "word": "yes"}],
  "metric": "accuracy",
  "objective": "classification"
}
)";

/// One token for the blank, each printable ASCII character, and two tildes: 96 tokens.
std::string tokenizer_json() {
  nlohmann::json vocabulary{{"~~", 0}};
  for (char c = '!'; c <= '~'; ++c) {
    vocabulary[std::string(1, c)] = c - '!' + 1;
  }
  vocabulary["\u0120"] = 95;
  const nlohmann::json bytes{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return nlohmann::json{{"version", "1.0"},
                        {"truncation", nullptr},
                        {"padding", nullptr},
                        {"added_tokens", nlohmann::json::array()},
                        {"normalizer", nullptr},
                        {"pre_tokenizer", bytes},
                        {"post_processor", nullptr},
                        {"decoder", bytes},
                        {"model",
                         {{"type", "BPE"},
                          {"dropout", nullptr},
                          {"unk_token", nullptr},
                          {"continuing_subword_prefix", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", false},
                          {"byte_fallback", false},
                          {"ignore_merges", false},
                          {"vocab", vocabulary},
                          {"merges", {"~ ~"}}}}}
      .dump();
}

/// Rows of different lengths, "row 7 aaaaaa", labels in turn.
std::string rows(int first, int count) {
  std::string text = "sentence\tlabel\n";
  for (int i = first; i < first + count; ++i) {
    text += "row " + std::to_string(i) + " " +
            std::string(static_cast<std::size_t>(1 + i * 5 % 11), static_cast<char>('a' + i % 26)) + "\t" +
            std::to_string(i % 2) + "\n";
  }
  return text;
}

}  // namespace

TinyProject::TinyProject(const std::string& model) {
  const fs::path golden = test_paths::sources / "tests/golden/models" / model;
  fs::create_directory(path("model"));
  fs::copy_file(golden / "config.json", path("model/config.json"));
  fs::copy_file(golden / "model.safetensors", path("model/model.safetensors"));
  write("model/tokenizer.json", tokenizer_json());
  write("task.json", task);
  write("train.tsv", rows(0, 40));
  write("dev.tsv", rows(40, 12));
  write("test.tsv", rows(52, 10));
  write("deck.yaml", tiny_deck);
}

fs::path TinyProject::write(const std::string& name, const std::string& text) const {
  fs::create_directories(path(name).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

ProgramOptions TinyProject::here(ProgramOptions options) const {
  if (options.folder.empty()) {
    options.folder = path();
  }
  const auto names_threads = [](const std::string& change) { return change.starts_with("OMP_NUM_THREADS"); };
  if (std::ranges::none_of(options.environment, names_threads)) {
    options.environment.emplace_back("OMP_NUM_THREADS=1");
  }
  return options;
}

ProgramResult TinyProject::run(const std::vector<std::string>& arguments, const ProgramOptions& options) const {
  return run_program(arguments, here(options));
}

ProgramResult TinyProject::run_line(const std::string& line) const {
  return run({}, {.wrapper = {"sh", "-c", "eval \"$1\"", "sh", line}});
}

ProgramResult TinyProject::train(const std::vector<std::string>& sets, const std::vector<std::string>& more,
                                 const ProgramOptions& options) const {
  return run(train_words("deck.yaml", sets, more), options);
}

nlohmann::json TinyProject::trained(const std::vector<std::string>& sets, const std::vector<std::string>& more,
                                    const ProgramOptions& options) const {
  const ProgramResult result = train(sets, more, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  std::string run = "run";
  for (const std::string& set : sets) {
    if (set.starts_with("output/folder=")) {
      run = set.substr(set.find('=') + 1);
    }
  }
  return summary(run);
}

nlohmann::json TinyProject::json(const std::vector<std::string>& arguments, const ProgramOptions& options) const {
  const ProgramResult result = run(arguments, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return nlohmann::json::parse(result.out);
}

nlohmann::json TinyProject::summary(const std::string& run) const {
  return nlohmann::json::parse(text_of_file(path(run) / "summary.json"));
}

std::vector<nlohmann::json> TinyProject::metrics(const std::string& run) const {
  std::istringstream lines(text_of_file(path(run) / "metrics.jsonl"));
  std::vector<nlohmann::json> list;
  for (std::string line; std::getline(lines, line);) {
    list.push_back(nlohmann::json::parse(line));
  }
  return list;
}

std::string line_of(const std::string& text, const std::string& label) {
  const std::size_t at = ("\n" + text).find("\n" + label);
  return at == std::string::npos ? "" : text.substr(at + label.size(), text.find('\n', at) - at - label.size());
}

std::vector<std::string> train_words(const std::string& deck_path, const std::vector<std::string>& sets,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> words{"train", deck_path};
  words.insert(words.end(), more.begin(), more.end());
  for (const std::string& set : sets) {
    words.insert(words.end(), {"--set", set});
  }
  return words;
}

void expect_one_line(const ProgramResult& result, int exit_code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.err.find("distzo2: "), 0U) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.find("internal"), std::string::npos) << result.err;
  for (const std::string& part : parts) {
    EXPECT_NE(result.err.find(part), std::string::npos) << "\"" << part << "\" is not in: " << result.err;
  }
}

std::uintmax_t size_of(const fs::path& path) {
  std::error_code missing;
  const std::uintmax_t size = fs::file_size(path, missing);
  return missing ? 0 : size;
}

bool kill_at_bytes(const TinyProject& project, const std::vector<std::string>& words, std::uintmax_t bytes) {
  RunningProgram program(words, project.here());
  while (program.running() && size_of(project.path("run/trajectory.zoj")) < bytes)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGKILL);
  return program.wait().signal == SIGKILL;
}

std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

void expect_same_run(const nlohmann::json& a, const nlohmann::json& b) {
  for (const char* key : {"steps", "theta_digest", "trajectory_digest", "initial", "final"}) {
    EXPECT_EQ(a.at(key), b.at(key)) << key;
  }
}

void wait_for_text(RunningProgram& program, const std::string& text) {
  while (program.running() && program.out().find(text) == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void expect_each_step_once(const std::vector<nlohmann::json>& metrics, std::size_t steps) {
  std::size_t next = 0;
  for (const nlohmann::json& line : metrics) {
    if (!line.contains("evaluation")) {
      EXPECT_EQ(line.at("step"), next++);
    }
  }
  EXPECT_EQ(next, steps);
}

}  // namespace distzo2
