// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.hpp"

namespace distzo2 {

/// A folder with a deck and all that it names: a random model of tests/golden/models with a tokenizer of one token a
/// character, 40 training, 12 dev and 10 test rows, and a task of two labels. A run takes well under a second.
class TinyProject {
public:
  explicit TinyProject(const std::string& model = "llama_tied");

  std::filesystem::path path(const std::string& name = {}) const { return folder_.path() / name; }
  /// Writes a file, with the folders above it, and returns its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const;

  /// `distzo2 train deck.yaml --set ...` in this folder, after "--resume auto" where `more` says so.
  ProgramResult train(const std::vector<std::string>& sets = {}, const std::vector<std::string>& more = {},
                      const ProgramOptions& options = {}) const;
  /// The same; it must exit with 0 and say nothing on stderr. Returns summary.json of the run folder `run`.
  nlohmann::json trained(const std::vector<std::string>& sets = {}, const std::vector<std::string>& more = {},
                         const ProgramOptions& options = {}) const;
  /// Any command in this folder.
  ProgramResult run(const std::vector<std::string>& arguments, const ProgramOptions& options = {}) const;
  /// A command line that the program printed, in this folder.
  ProgramResult run_line(const std::string& line) const;
  /// These options with what they leave out: this folder, and one thread, on which a model so small is fastest.
  ProgramOptions here(ProgramOptions options = {}) const;
  /// A command that prints JSON, parsed; it must exit with 0 and say nothing on stderr.
  nlohmann::json json(const std::vector<std::string>& arguments, const ProgramOptions& options = {}) const;

  nlohmann::json summary(const std::string& run = "run") const;
  std::vector<nlohmann::json> metrics(const std::string& run = "run") const;  // a line each

private:
  TemporaryFolder folder_;
};

/// These --set options, and more of them.
std::vector<std::string> with(std::vector<std::string> sets, const std::vector<std::string>& more);

/// What `train` is told to go on with a run.
inline const std::vector<std::string> resume{"--resume", "auto"};

/// The rest of the line that begins with this label; empty where there is none.
std::string line_of(const std::string& text, const std::string& label);

/// The words of `distzo2 train` for a deck with these --set options.
std::vector<std::string> train_words(const std::string& deck, const std::vector<std::string>& sets,
                                     const std::vector<std::string>& more = {});

/// The program ended with this code and one line of its own on stderr, which holds these parts.
void expect_one_line(const ProgramResult& result, int exit_code, const std::vector<std::string>& parts);

/// 0 where there is no such file.
std::uintmax_t size_of(const std::filesystem::path& path);

/// Starts the run of the folder `run` and kills it once its trajectory has so many bytes. Returns false where it had
/// ended before.
bool kill_at_bytes(const TinyProject& project, const std::vector<std::string>& words, std::uintmax_t bytes);

/// Two summaries are of runs with the same bits.
void expect_same_run(const nlohmann::json& a, const nlohmann::json& b);

/// Returns once the program has printed this text, or has ended.
void wait_for_text(RunningProgram& program, const std::string& text);

/// metrics.jsonl holds each of these steps once, in order.
void expect_each_step_once(const std::vector<nlohmann::json>& metrics, std::size_t steps);

}  // namespace distzo2
