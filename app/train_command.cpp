// SPDX-License-Identifier: BSD-3-Clause
#include "app/checkpointing.hpp"
#include "app/commands.hpp"
#include "app/lane_log.hpp"
#include "app/loading.hpp"
#include "app/memory_budget.hpp"
#include "app/next_command.hpp"
#include "app/node_plan.hpp"
#include "app/open_run.hpp"
#include "app/output_place.hpp"
#include "app/placed_model.hpp"
#include "app/plan_report.hpp"
#include "app/progress.hpp"
#include "app/ranks.hpp"
#include "app/restore_point.hpp"
#include "app/resume.hpp"
#include "app/run_evaluations.hpp"
#include "app/run_messages.hpp"
#include "app/step_losses.hpp"
#include "app/step_setup.hpp"
#include "app/stop_request.hpp"
#include "app/store_place.hpp"
#include "app/summary.hpp"
#include "app/training_loop.hpp"
#include "app/trajectory_copies.hpp"
#include "core/step.hpp"
#include "parallel/process_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

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

/// What a rank takes of the deck: one file is written by one.
RunConfig of_rank(RunConfig config, int rank) {
  if (rank != 0) config.output.trace_file.clear();
  return config;
}

/// Steps between two digests of the parameters, which ranks compare and the trajectory keeps: one reads them all, which
/// costs little where they are in memory. 0: at the end alone.
std::uint32_t consistency_interval(const RunConfig& config, const MemoryPlan& plan) {
  constexpr std::uint32_t automatic = 1000;
  return config.parallel.check_every.value_or(plan.placement.streams_any() ? 0 : automatic);
}

/// Applies the records of a resumed run, after theta_0 was evaluated on a set that the run did not have when it began.
/// False where a stop request ended that: no record is applied then. By all ranks.
bool catch_up(PlacedModel& placed, const RunFiles& files, const RestorePoint& from, RunEvaluations& evaluations,
              const RunFolder& folder, Progress& progress, Communicator& world) {
  const std::vector<StepRecord>& records = files.records;
  if (records.empty()) return true;
  // A rank's store may be that of a run before.
  const std::vector<std::uint64_t> advanced = world.gather(std::uint64_t{placed.is_advanced() ? 1U : 0U});
  const bool have_first_theta = std::ranges::count(advanced, 1U) == 0;
  if (have_first_theta && !evaluations.at(0, false)) return false;
  replay(placed.engine(), records);
  // What the run knows of theta here, a second time: costs no pass over what streams.
  ParameterStore& store = placed.engine().store();
  if (!files.digests.empty() && files.digests.back().t == records.size() && !store.placement().streams_any())
    check_replayed(files.digests.back(), store.shared_digest(), folder.trajectory());
  progress.say(fmt::format("resumed  after step {}, {}", records.size(), from.how(records.size())));
  return true;
}

ExitCode stopped(StopReason reason, const Training& training, const TrainOptions& options, const RunFolder& folder) {
  training.progress.say(fmt::format("stopped  at the {} after step {}",
                                    reason == StopReason::signal ? "signal" : "time limit", training.records.size()));
  training.progress.say(resume_command(options, training.config, folder, training.world.size()));
  training.world.barrier();  // rank 0 has written all: the job may end
  return ExitCode::stopped;
}

/// Ends the loading of a run at a signal. Not for several ranks, one of which may have had none: they end together.
class LoadingStop {
public:
  LoadingStop(const TrainOptions& options, const OpenRun& run, const StopSignals& signals)
      : options_(options), run_(run), signals_(signals) {}

  /// What is told while this rank reads; it may throw as check() does, where it is alone.
  ByteProgress told_to(Progress& progress, const Communicator& world) const {
    return [this, shown = shown_by(&progress), alone = world.size() == 1](const char* what, std::uint64_t done,
                                                                          std::uint64_t total) {
      shown(what, done, total);
      if (alone && signals_.received() != 0) stop();
    };
  }
  /// Throws Error (stopped) on all ranks where a signal came to one of them. By all ranks.
  void check(Communicator& world) const {
    const auto mine = signals_.received() != 0 ? std::optional(StopReason::signal) : std::nullopt;
    if (agreed_stop(world, mine)) stop();
  }

private:
  [[noreturn]] void stop() const {
    const std::uint32_t steps = run_.steps_done();
    throw Error(ExitCode::stopped, fmt::format("stopped at the signal while loading: no step was taken{}; the same "
                                               "command {}",
                                               steps > 0 ? fmt::format(" after step {}", steps) : "",
                                               !run_.folder      ? "begins the run"
                                               : options_.resume ? "goes on"
                                                                 : "with --resume auto goes on"));
  }
  const TrainOptions& options_;
  const OpenRun& run_;
  const StopSignals& signals_;
};

/// Records the digest of theta after the last step; where a resumed run has that record, it must agree.
void record_digest(const RunFiles& files, const RunFolder& folder, std::uint64_t digest, std::uint32_t steps) {
  const bool is_new = files.digests.empty() || files.digests.back().t != steps;
  if (!is_new) check_replayed(files.digests.back(), digest, folder.trajectory());
  for (TrajectoryWriter* writer : files.writers()) {
    if (is_new) writer->append(DigestRecord{steps, digest});
    writer->sync();
  }
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

ExitCode train_command(const TrainOptions& options, const RunConfig& given, Job& job) {
  // 1. The ranks, and the run's folder with what was done there already.
  const StopSignals signals;
  Communicator& world = job.world();
  const bool first = job.is_first();
  const RunConfig config = of_rank(for_resume(options, given), world.rank());
  check_same_deck(job, config);
  refuse_no_training_data(options, config);
  const ProcessGrid grid(world, layout_of(config, world.size()));
  job.set_timeout(config.parallel.timeout_s);
  std::optional<Job::Busy> loading(std::in_place, job);  // no rank's reading is another one's time limit
  Progress progress(config.output.log_every, config.zo.steps, first);
  const Job::BeforeMessage ends_progress(job, [&] { progress.end(); });
  OpenRun run;
  bool finished = false;
  on_first(world, [&] {
    check_output_place(config);
    run = find_run(options, config, progress);
    finished = is_finished(run, config.zo.steps);
  });
  if (world.broadcast(std::uint64_t{finished ? 1U : 0U}) != 0) {
    if (first)
      progress.say(fmt::format("{} is finished: {}", run.folder->path.string(), run.folder->summary().string()));
    return ExitCode::done;
  }
  share_run(world, run);
  refuse_fewer_steps(config, run);

  // 2. Data, and where everything will be.
  const LoadingStop stop(options, run, signals);
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_data(config, model, Sets::all);
  check_same_data(job, data);
  stop.check(world);
  NodePlan of_node = plan_on_node(job, config, model, data);
  const MemoryPlan& plan = of_node.plan;
  const PlannedRun planned{config, model, table, data};

  // 3. The model. What goes to disk needs the run's folder; otherwise there is none before all has been read.
  const bool on_disk = plan.disk_bytes > 0;
  if (on_disk && !run.folder) check_scratch(planned, plan);
  const std::vector<std::uint64_t> disks = world.gather(std::uint64_t{on_disk ? 1U : 0U});
  if (std::ranges::count(disks, 1U) > 0) {
    on_first(world, [&] { make_folder(run, options, config); });
    share_folder(world, run);
  }
  const StorePlace stored = run.folder ? place_store(job, config, *run.folder, of_node) : StorePlace();
  say_all(progress, stored.notes);
  const bool resumes_all = options.resume && !options.resume_step && options.resume_path.empty();
  if (resumes_all && config.memory.scratch_persistent) {
    say_all(progress, take_longest(job, run, stored.copies));
    refuse_fewer_steps(config, run);
  }
  if (first && plan.placement.streams_any()) say_all(progress, plan_lines(planned, plan));
  if (!of_node.line.empty()) progress.say(of_node.line);
  RestorePoint from(job, run, plan, config, progress);
  RunFiles files;  // outlives the model, which writes nothing before its records are durable
  PlacedModel placed(config, model, plan, config.precision.compute, stored.store, run.records_found(),
                     stop.told_to(progress, world), of_node.window.get(),
                     from.restore(of_node.sharers, stop.told_to(progress, world)));
  say_all(progress, from.problems());
  Engine& engine = placed.engine();
  stop.check(world);

  // 4. A new trajectory, or the found one.
  const TrajectoryHeader header = trajectory_header(
      config, data, engine, theta0_digest(config, placed, run.found, of_node.sharers, stop.told_to(progress, world)));
  check_same_model(job, header.theta0_digest);
  on_first(world, [&] {
    make_folder(run, options, config);
    files = open_files(run, header, config, data, progress);
  });
  share_folder(world, run);
  if (!first) files = records_of(run);
  const RunFolder& folder = *run.folder;
  if (config.memory.scratch_persistent)
    files.copy = open_copy(world, folder, stored.copy, config.checkpoint.trajectory_sync_s);
  const std::vector<TrajectoryWriter*> writers = files.writers();
  if (!writers.empty())
    placed.write_after(writers);
  else
    placed.expect_records(config.zo.steps);

  // 5. What the run is, in a few lines, and up to where it was.
  if (first) say_all(progress, opening_lines(run, planned, plan, engine.store()));
  say_all(progress, rank_lines(job));
  TimeLeft time_left(work_of(config, data));
  LaneLog lanes(config, engine);
  RunEvaluations evaluations(config, data, folder, engine, files.trajectory.get(), files.metrics, progress, signals,
                             time_left, lanes, job);
  const bool goes_on = catch_up(placed, files, from, evaluations, folder, progress, world);
  world.barrier();
  loading.reset();
  if (of_node.window) of_node.window->set_timeout(config.parallel.timeout_s);

  // 6. The steps.
  lanes.leave_out();
  const auto evaluation_point = [&](std::uint32_t t) {
    return evaluations.at(t, false) ? std::nullopt : std::optional(evaluations.stopped_by());
  };
  std::optional<DigestRecord> last_digest;
  const auto theta_digest_at = [&](std::uint32_t steps) {
    if (last_digest && last_digest->t == steps) return last_digest->theta_digest;
    last_digest = DigestRecord{steps, check_same_theta(job, engine.store(), steps)};
    for (TrajectoryWriter* writer : writers) writer->append(*last_digest);
    return last_digest->theta_digest;
  };
  const std::uint32_t interval = consistency_interval(config, plan);
  const auto consistency_point = [&](std::uint32_t steps) {
    if (interval != 0 && steps % interval == 0 && steps != config.zo.steps) theta_digest_at(steps);
  };
  const bool one_reads = world.broadcast(std::uint64_t{on_disk && of_node.window ? 1U : 0U}) != 0;
  Checkpointing checkpoints({job, config, folder, engine.store(), files.trajectory.get(), header.theta0_digest,
                             one_reads, progress, theta_digest_at},
                            from.newest_step());
  const auto keep_record = [&](const StepRecord& record) {
    for (TrajectoryWriter* writer : writers) writer->append(record);
    if (writers.empty()) placed.recorded(record);
  };
  Training training{config,           data,
                    engine,           world,
                    grid.layout(),    keep_record,
                    files.metrics,    progress,
                    signals,          std::move(files.records),
                    evaluation_point, consistency_point,
                    checkpoints,      lanes,
                    time_left};
  const StopReason end = goes_on ? train(training) : evaluations.stopped_by();
  for (TrajectoryWriter* writer : writers) writer->sync();
  lanes.close();
  placed.sync();
  if (end != StopReason::finished && goes_on)
    checkpoints.at_stop(engine.store().next_step(), seconds_to_end(signals, config.checkpoint));
  if (end != StopReason::finished) return stopped(end, training, options, folder);

  // 7. The result: theta's digest, its evaluation, the model, the summary.
  const std::uint64_t theta_digest = check_same_theta(job, engine.store(), config.zo.steps);
  on_first(world, [&] { record_digest(files, folder, theta_digest, config.zo.steps); });
  if (!first) record_digest(files, folder, theta_digest, config.zo.steps);
  if (!evaluations.at(config.zo.steps, true)) return stopped(evaluations.stopped_by(), training, options, folder);
  const std::vector<RankSummary> ranks = rank_summaries(world, training, placed);
  const Job::Busy ending(job);  // rank 0's work
  const bool writes = writes_models(config, engine.store());
  on_first(world, [&] {
    if (writes) evaluations.write_final();
    if (config.precision.storage != Storage::fp32)
      progress.say(rounding_line(engine.store().rounding(), config.zo.epsilon));
    files.trajectory->check_in_place();
    write_summary(folder, training, placed, theta_digest, evaluations, ranks, job.places());
  });
  if (!config.memory.keep_store) {
    placed.close();
    say_all(progress, remove_stores(job, config, folder));
  }

  // 8. What became of it, and the command that goes on from here.
  on_first(world, [&] {
    say_all(progress, result_lines(config, folder, evaluations));
    const FinalModel final_model = !writes                                 ? FinalModel::not_written
                                   : evaluations.reported(config.zo.steps) ? FinalModel::evaluated
                                                                           : FinalModel::unevaluated;
    if (evaluations.models_problem().empty())
      if (const std::string next = next_command(config, folder, plan, final_model); !next.empty()) progress.say(next);
    refuse_bad_end(config, folder, evaluations);
  });
  return ExitCode::done;
}

}  // namespace distzo2
