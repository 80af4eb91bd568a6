// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/lane_log.hpp"
#include "app/loading.hpp"
#include "app/progress.hpp"
#include "app/run_config.hpp"
#include "app/run_folder.hpp"
#include "app/stop_request.hpp"
#include "app/time_left.hpp"
#include "core/engine.hpp"
#include "io/trajectory_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

class Job;  // parallel/job.hpp

/// Whether final/ and best/ are written: `write models: auto` does so below 10 GB.
bool writes_models(const RunConfig& config, const ParameterStore& store);

/// The evaluations of a run: the dev set at its points, best/ where it improves, the test set at both ends. All ranks
/// share their passes; rank 0, which alone has a `trajectory`, knows what was recorded and writes.
class RunEvaluations {
public:
  RunEvaluations(const RunConfig& config, const LoadedData& data, const RunFolder& folder, Engine& engine,
                 const TrajectoryWriter* trajectory, MetricsFile& metrics, Progress& progress,
                 const StopSignals& signals, TimeLeft& time_left, LaneLog& lanes, Job& job);

  /// theta_t as it is now. What metrics.jsonl has of this step already is not computed again. False where a stop
  /// request ended an evaluation: it is to be made on resume, so that step t must not be recorded before. Throws Error
  /// (file) where the run's folder is no longer the one that the trajectory is written in.
  /// By all ranks.
  bool at(std::uint32_t t, bool end);
  /// Why `at` gave up, the same on all ranks.
  StopReason stopped_by() const { return stopped_by_.value(); }
  /// Writes theta as it is to final/, as `at` does to best/. Where its numbers do not allow that, which no second try
  /// would change, the run goes on: the reason is said once and kept.
  void write_final();
  /// Which of best/ and final/ lack their model, and why; empty: none does.
  std::string models_problem() const;
  /// The best evaluation on the dev set so far; none where there is no dev set.
  const std::optional<RecordedEvaluation>& best() const { return best_; }
  /// Whether best/ holds the model of that evaluation, as metrics.jsonl keeps it: what stands there may be of an
  /// earlier one. The base model, best at step 0, is not written.
  bool best_is_written() const;
  /// The evaluation of theta_t that the summary reports (test, else dev), if it was made.
  std::optional<EvaluationResult> reported(std::uint32_t t) const;

private:
  /// Why the model could not be written to the folder; empty: it was.
  std::string write_model(const std::filesystem::path& folder);
  bool is_due(std::uint32_t t, const std::string& set) const;
  std::optional<EvaluationResult> recorded(std::uint32_t t, const std::string& set) const;
  std::optional<EvaluationResult> evaluated(const std::string& set, const ExampleSet& examples);
  void record(const RecordedEvaluation& evaluation);
  /// Writes theta as it is to best/ where models are written, and keeps with the evaluation whether that was done.
  void write_best(RecordedEvaluation& best);

  const RunConfig& config_;
  const LoadedData& data_;
  const RunFolder& folder_;
  Engine& engine_;
  const TrajectoryWriter* trajectory_;
  MetricsFile& metrics_;
  Progress& progress_;
  const StopSignals& signals_;
  TimeLeft& time_left_;
  LaneLog& lanes_;
  Job& job_;
  std::optional<StopReason> stopped_by_;
  std::uint32_t interval_;  // steps; 0: at the ends only
  std::vector<RecordedEvaluation> recorded_;
  std::optional<RecordedEvaluation> best_;
  std::string final_problem_;
};

}  // namespace distzo2
