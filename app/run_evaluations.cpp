// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_evaluations.hpp"

#include "app/model_export.hpp"
#include "app/step_losses.hpp"
#include "core/clock.hpp"
#include "parallel/job.hpp"

#include <fmt/format.h>

#include <system_error>

namespace distzo2 {
namespace {

/// Base model and trajectory give any theta_t again, so larger models are written only where the deck asks.
constexpr double automatic_model_bytes = 10e9;

}  // namespace

bool writes_models(const RunConfig& config, const ParameterStore& store) {
  if (config.model.random()) return false;  // no folder's tokenizer and configuration to write beside the weights
  switch (config.output.write_models) {
    case WriteModels::always:
      return true;
    case WriteModels::never:
      return false;
    case WriteModels::automatic:
      return static_cast<double>(store.bytes()) < automatic_model_bytes;
  }
  return false;
}

RunEvaluations::RunEvaluations(const RunConfig& config, const LoadedData& data, const RunFolder& folder, Engine& engine,
                               const TrajectoryWriter* trajectory, MetricsFile& metrics, Progress& progress,
                               const StopSignals& signals, TimeLeft& time_left, LaneLog& lanes, Job& job)
    : config_(config),
      data_(data),
      folder_(folder),
      engine_(engine),
      trajectory_(trajectory),
      metrics_(metrics),
      progress_(progress),
      signals_(signals),
      time_left_(time_left),
      lanes_(lanes),
      job_(job),
      interval_(evaluation_interval(config)),
      recorded_(job.is_first() ? recorded_evaluations(folder.metrics()) : std::vector<RecordedEvaluation>()),
      best_(best_on_dev(recorded_)) {}

bool RunEvaluations::at(std::uint32_t t, bool end) {
  const bool ends = t == 0 || end;
  if (data_.dev && (ends || (interval_ != 0 && t % interval_ == 0)) && is_due(t, "dev")) {
    const std::optional<EvaluationResult> result = evaluated("dev", *data_.dev);
    if (!result) return false;
    RecordedEvaluation dev{t, "dev", *result, data_.dev->digest, {}, {}};
    if (!best_ || is_better(*result, best_->result)) {
      if (t > 0 && job_.is_first()) write_best(dev);
      best_ = dev;
    }
    record(dev);             // after best/, so that a run that is resumed between the two writes it
    job_.world().barrier();  // the ranks wait here for a model to be written: there is no limit to that
  }
  if (data_.test && ends && is_due(t, "test")) {
    const std::optional<EvaluationResult> result = evaluated("test", *data_.test);
    if (!result) return false;
    record({t, "test", *result, data_.test->digest, {}, {}});
  }
  return true;
}

void RunEvaluations::write_best(RecordedEvaluation& best) {
  const bool writes = writes_models(config_, engine_.store());
  if (writes) best.best_problem = write_model(folder_.best_model());
  best.in_folder_best = writes && best.best_problem.empty();
}

void RunEvaluations::write_final() {
  final_problem_ = write_model(folder_.final_model());
}

std::string RunEvaluations::write_model(const std::filesystem::path& folder) {
  const Job::Busy writing(job_);
  trajectory_->check_in_place();
  const std::string problem = export_problem(engine_.store());
  if (problem.empty()) {
    export_model(engine_.store(), config_.model.folder, folder, IfExists::replace);
    return {};
  }
  if (models_problem().empty()) progress_.say(fmt::format("warning  {} is not written: {}", folder.string(), problem));
  return fmt::format("{} could not be written: {}", folder.string(), problem);
}

std::string RunEvaluations::models_problem() const {
  const std::string best = best_ ? best_->best_problem : "";
  return best + (best.empty() || final_problem_.empty() ? "" : "; ") + final_problem_;
}

bool RunEvaluations::best_is_written() const {
  std::error_code none;
  return best_ && best_->in_folder_best.value_or(false) && std::filesystem::is_directory(folder_.best_model(), none);
}

std::optional<EvaluationResult> RunEvaluations::reported(std::uint32_t t) const {
  return recorded(t, data_.test ? "test" : "dev");
}

bool RunEvaluations::is_due(std::uint32_t t, const std::string& set) const {
  return job_.world().broadcast(std::uint64_t{recorded(t, set) ? 0U : 1U}) != 0;
}

std::optional<EvaluationResult> RunEvaluations::recorded(std::uint32_t t, const std::string& set) const {
  for (const RecordedEvaluation& r : recorded_)
    if (r.step == t && r.set == set) return r.result;
  return std::nullopt;
}

std::optional<EvaluationResult> RunEvaluations::evaluated(const std::string& set, const ExampleSet& examples) {
  lanes_.interrupt_step();
  const auto go_on = [&](std::size_t done) {
    lanes_.leave_out();
    progress_.working(fmt::format("evaluating {}: {}/{}", set, done, examples.examples.size()));
    stopped_by_ = agreed_stop(job_.world(), stop_request(signals_, config_.checkpoint));
    return !stopped_by_;
  };
  const auto start = Clock::now();
  auto result = evaluate(engine_, examples.examples, data_.objective, job_.world(), go_on);
  lanes_.leave_out();
  if (trajectory_ != nullptr) trajectory_->check_in_place();
  time_left_.evaluation(set == "dev" ? EvaluatedSet::dev : EvaluatedSet::test, seconds_since(start));
  return result;
}

void RunEvaluations::record(const RecordedEvaluation& evaluation) {
  recorded_.push_back(evaluation);
  metrics_.evaluation(evaluation);
  const EvaluationResult& result = evaluation.result;
  progress_.say(fmt::format("step {} on {}: accuracy {:.4f}, loss {:.4f}, {} examples", evaluation.step, evaluation.set,
                            result.accuracy, result.loss, result.examples));
}

}  // namespace distzo2
