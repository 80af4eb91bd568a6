// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/lane_log.hpp"
#include "app/loading.hpp"
#include "app/memory_budget.hpp"
#include "app/next_command.hpp"
#include "app/open_run.hpp"
#include "app/output_place.hpp"
#include "app/placed_model.hpp"
#include "app/plan_report.hpp"
#include "app/progress.hpp"
#include "app/resume.hpp"
#include "app/run_evaluations.hpp"
#include "app/run_messages.hpp"
#include "app/step_losses.hpp"
#include "app/stop_request.hpp"
#include "app/summary.hpp"
#include "app/training_loop.hpp"
#include "core/step.hpp"

#include <fmt/format.h>

#include <cmath>

namespace distzo2 {
namespace {

void say_all(Progress& progress, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) progress.say(line);
}

void refuse_no_training_data(const TrainOptions& options, const RunConfig& config) {
  if (!config.data.trains())
    throw Error(ExitCode::usage, fmt::format("{}: data/train: is missing, and training needs it; accepted: a path",
                                             options.deck.deck.string()));
}

void refuse_fewer_steps(const RunConfig& config, const OpenRun& run) {
  if (run.steps_done() > config.zo.steps)
    throw Error(ExitCode::usage, fmt::format("zo/steps: {}, but {} holds {}; accepted: that many and more",
                                             config.zo.steps, run.folder->trajectory().string(), run.steps_done()));
}

/// What is to be done, for the time that is left.
RunWork work_of(const RunConfig& config, const LoadedData& data) {
  const auto tokens = [](const std::optional<ExampleSet>& set) { return set ? evaluation_tokens(set->examples) : 0; };
  const int evaluations = evaluation_count(config.zo.difference, static_cast<int>(config.zo.directions));
  return {config.zo.steps,
          evaluation_interval(config),
          static_cast<std::uint32_t>(evaluations),
          {tokens(data.dev), tokens(data.test)}};
}

/// Applies the records of a resumed run, after theta_0 was evaluated on a set that the run did not have when it began.
/// False where a stop request ended that: no record is applied then.
bool catch_up(PlacedModel& placed, const std::vector<StepRecord>& records, RunEvaluations& evaluations,
              Progress& progress) {
  if (records.empty()) return true;
  if (!placed.is_advanced() && !evaluations.at(0, false)) return false;
  replay(placed.engine(), records);
  progress.say(fmt::format("resumed  after step {}, by replay", records.size()));
  return true;
}

ExitCode stopped(StopReason reason, const Training& training, const TrainOptions& options, const RunFolder& folder) {
  training.progress.say(fmt::format("stopped  at the {} after step {}",
                                    reason == StopReason::signal ? "signal" : "time limit", training.records.size()));
  training.progress.say(resume_command(options, training.config, folder));
  return ExitCode::stopped;
}

/// The digest of theta after the last step, which is recorded; where a resumed run has that record, it must agree.
std::uint64_t record_digest(RunFiles& files, const RunFolder& folder, ParameterStore& store, std::uint32_t steps) {
  const std::uint64_t digest = store.digest();
  if (files.digests.empty() || files.digests.back().t != steps)
    files.trajectory->append(DigestRecord{steps, digest});
  else if (const std::uint64_t was = files.digests.back().theta_digest; was != digest)
    throw Error(ExitCode::internal, fmt::format("{}: the replay of step {} has digest {:016x}, the run had {:016x}",
                                                folder.trajectory().string(), steps, digest, was));
  files.trajectory->sync();
  return digest;
}

/// A run that did all its steps can yet have come to nothing, or have lost a model.
void refuse_bad_end(const RunConfig& config, const RunFolder& folder, const RunEvaluations& evaluations) {
  const auto last = evaluations.reported(config.zo.steps);
  if (last && !std::isfinite(last->loss))
    throw Error(ExitCode::diverged,
                fmt::format("{}: the loss of the last evaluation is not finite: the model gives no answers any more. "
                            "Lower zo/learning rate, or set zo/non-finite to stop",
                            folder.summary().string()));
  if (!evaluations.models_problem().empty())
    throw Error(ExitCode::file,
                evaluations.models_problem() + "; the rest of the run is whole: summary, metrics and trajectory");
}

}  // namespace

ExitCode train_command(const TrainOptions& options, const RunConfig& given) {
  // 1. The run's folder, and what was done there already.
  const RunConfig config = for_resume(options, given);
  refuse_no_training_data(options, config);
  Progress progress(config.output.log_every, config.zo.steps);
  check_output_place(config);
  OpenRun run = find_run(options, config, progress);
  if (is_finished(run, config.zo.steps)) {
    progress.say(fmt::format("{} is finished: {}", run.folder->path.string(), run.folder->summary().string()));
    return ExitCode::done;
  }
  refuse_fewer_steps(config, run);

  // 2. Data, and where everything will be.
  const StopSignals signals;
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_data(config, model, Sets::all);
  const MemoryPlan plan = plan_here(config, model, data);
  const PlannedRun planned{config, model, table, data};

  // 3. The model. What goes to disk needs the run's folder; otherwise there is none before all has been read.
  const bool on_disk = plan.disk_bytes > 0;
  if (on_disk && !run.folder) check_scratch(planned, plan);
  if (on_disk) make_folder(run, options, config);
  if (plan.placement.streams_any()) say_all(progress, plan_lines(planned, plan));
  PlacedModel placed(config, model, plan, config.precision.compute,
                     on_disk ? store_folder(config, *run.folder) : std::filesystem::path(), run.steps_done(),
                     &progress);
  Engine& engine = placed.engine();

  // 4. A new trajectory, or the found one.
  const TrajectoryHeader header = trajectory_header(
      config, data, engine, placed.is_advanced() ? run.found->header.theta0_digest : engine.store().digest());
  const RunFolder& folder = make_folder(run, options, config);
  RunFiles files = open_files(run, header, config, data, progress);
  placed.write_after(*files.trajectory);

  // 5. What the run is, in a few lines, and up to where it was.
  say_all(progress, opening_lines(run, planned, plan, engine.store()));
  TimeLeft time_left(work_of(config, data));
  RunEvaluations evaluations(config, data, folder, engine, *files.trajectory, files.metrics, progress, signals,
                             time_left);
  const bool goes_on = catch_up(placed, files.records, evaluations, progress);

  // 6. The steps.
  LaneLog lanes(config, engine);
  const auto evaluation_point = [&](std::uint32_t t) { return evaluations.at(t, false); };
  Training training{config,           data,     engine,   *files.trajectory,
                    files.metrics,    progress, signals,  std::move(files.records),
                    evaluation_point, lanes,    time_left};
  const StopReason end = goes_on ? train(training) : stop_request(signals, config.checkpoint).value();
  files.trajectory->sync();
  lanes.close();
  placed.sync();
  if (end != StopReason::finished) return stopped(end, training, options, folder);

  // 7. The result: theta's digest, its evaluation, the model, the summary.
  const std::uint64_t theta_digest = record_digest(files, folder, engine.store(), config.zo.steps);
  if (!evaluations.at(config.zo.steps, true))
    return stopped(stop_request(signals, config.checkpoint).value(), training, options, folder);
  const bool writes = writes_models(config, engine.store());
  if (writes) evaluations.write_final();
  if (config.precision.storage != Storage::fp32)
    progress.say(rounding_line(engine.store().rounding(), config.zo.epsilon));
  files.trajectory->check_in_place();
  write_summary(folder, training, placed, theta_digest, evaluations);
  if (!config.memory.keep_store) placed.remove_store();  // the engine's end

  // 8. What became of it, and the command that goes on from here.
  say_all(progress, result_lines(config, folder, evaluations));
  const FinalModel final_model = !writes                                 ? FinalModel::not_written
                                 : evaluations.reported(config.zo.steps) ? FinalModel::evaluated
                                                                         : FinalModel::unevaluated;
  if (evaluations.models_problem().empty())
    if (const std::string next = next_command(config, folder, plan, final_model); !next.empty()) progress.say(next);
  refuse_bad_end(config, folder, evaluations);
  return ExitCode::done;
}

}  // namespace distzo2
