// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/trajectory_record.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

struct ExchangeCost;  // parallel/exchange.hpp

/// The files of a run (design section 7).
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path deck() const { return path / "deck.yaml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path trajectory() const { return path / "trajectory.zoj"; }
  std::filesystem::path summary() const { return path / "summary.json"; }
  std::filesystem::path final_model() const { return path / "final"; }
  std::filesystem::path best_model() const { return path / "best"; }
  std::filesystem::path changes() const { return path / "changes.jsonl"; }    // app/run_changes.hpp
  std::filesystem::path checkpoints() const { return path / "checkpoints"; }  // app/run_checkpoints.hpp
  std::filesystem::path store_record() const { return path / "store.path"; }  // app/store_place.hpp
  static constexpr const char* checkpoint_prefix = "step-";                   // in `checkpoints`, then the step
  static constexpr const char* set_aside_prefix = "set-aside-";               // then a number: app/set_aside.hpp
  std::filesystem::path lock() const { return path / ".lock"; }               // app/run_lock.hpp; it stays, empty
};

/// The number that follows this prefix and ends a name, in digits alone; -1 for any other name.
int number_after(const std::string& name, const std::string& prefix);

/// Throws Error (usage) where `output/folder` holds a run.
void check_no_run(const RunConfig& config);

/// A new run's folder: the deck's `output/folder`, which must hold no run, or runs/<deck name>-<NNN>, the first free
/// number. Created here. Throws Error: usage for a folder that holds a run, file where it cannot be made.
RunFolder new_run_folder(const RunConfig& config, const std::filesystem::path& deck);

/// The run whose resolved deck this is: the deck.yaml beside a trajectory.
std::optional<RunFolder> run_of_deck(const std::filesystem::path& deck);

/// The folder that `--resume auto` goes on in: `output/folder`, else the newest runs/<deck name>-<NNN> that is a folder
/// with something in it; none where there is no such folder yet.
struct ExistingRun {
  std::optional<RunFolder> folder;
  std::vector<std::filesystem::path> passed_over;  // newer ones that are no folders, or without a run
};
ExistingRun existing_run_folder(const RunConfig& config, const std::filesystem::path& deck);

/// Throws Error (file) where something else than a file stands in the place of one of the run's files: a pipe would be
/// waited for, and a folder is found too late.
void check_run_files(const RunFolder& folder);

/// summary.json, as a folder has it.
struct FoundSummary {
  bool there = false;
  std::string problem;  // what keeps it from being the run's end
  std::string commit;   // that made it
  std::string ended;    // when, in UTC
  bool is_end() const { return there && problem.empty(); }
};
/// Of a run whose trajectory has so many steps: a summary of others is no end of it.
FoundSummary find_summary(const RunFolder& folder, std::uint64_t steps_done);

/// Removes what a killed process left of files and folders that it was about to put in place. Only for a locked run.
void remove_leftovers(const RunFolder& folder);
/// The same of folders of this prefix and a number.
void remove_numbered_leftovers(const std::filesystem::path& folder, const std::string& prefix);

/// An evaluation as metrics.jsonl and summary.json hold it.
struct EvaluationResult {
  double accuracy = 0.0;
  double loss = 0.0;
  std::uint64_t examples = 0;
  std::vector<std::uint64_t> confusion;  // (labels, labels), [right * labels + predicted]
};

/// An evaluation that metrics.jsonl holds.
struct RecordedEvaluation {
  std::uint32_t step = 0;
  std::string set;  // "dev" or "test"
  EvaluationResult result;
  std::optional<std::uint64_t> data_digest;  // of the set's examples
  std::optional<bool> in_folder_best;        // of the best on the dev set so far: whether best/ was made its model
  std::string best_problem;                  // why its numbers did not allow that
};
std::vector<RecordedEvaluation> recorded_evaluations(const std::filesystem::path& metrics);

/// Whether a model with the one result is better than one with the other: by accuracy, then by loss.
bool is_better(const EvaluationResult& a, const EvaluationResult& b);
/// The best evaluation on the dev set, the first of equals; none where there is none.
std::optional<RecordedEvaluation> best_on_dev(const std::vector<RecordedEvaluation>& evaluations);

/// The times that metrics.jsonl holds of steps, in order; a step whose line was made anew after a crash has none.
struct RecordedStep {
  double tokens = 0.0;
  double seconds = 0.0;
};
std::vector<RecordedStep> recorded_steps(const std::filesystem::path& metrics);

/// metrics.jsonl: one object a step, one an evaluation; a line is handed to the system whole.
class MetricsFile {
public:
  /// Of a rank other than 0: nothing is written.
  MetricsFile() = default;
  /// Keeps the lines of steps that have a record, and evaluations up to theta after the last of them; a line that a
  /// crash cut short or that the records do not cover goes, and a step with a record but no line gets one without
  /// times.
  MetricsFile(const std::filesystem::path& path, const std::vector<StepRecord>& recorded);
  /// `exchange`: what the exchange cost, of a run on several ranks.
  void step(const StepRecord& record, double loss, std::uint64_t tokens, double seconds,
            const ExchangeCost* exchange = nullptr);
  void evaluation(const RecordedEvaluation& evaluation);

private:
  void line(const std::string& text);
  std::filesystem::path path_;
  std::ofstream out_;
};

}  // namespace distzo2
