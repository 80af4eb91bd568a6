// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/data_notes.hpp"
#include "app/lane_log.hpp"
#include "app/loading.hpp"
#include "app/machine.hpp"
#include "app/memory_budget.hpp"
#include "app/model_export.hpp"
#include "app/next_command.hpp"
#include "app/placed_model.hpp"
#include "app/plan_report.hpp"
#include "app/progress.hpp"
#include "app/resume.hpp"
#include "app/run_evaluations.hpp"
#include "app/run_folder.hpp"
#include "app/step_losses.hpp"
#include "app/stop_request.hpp"
#include "app/summary.hpp"
#include "app/training_loop.hpp"
#include "core/step.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>

namespace distzo2 {

namespace fs = std::filesystem;

namespace {

/// A finished run has a summary; with a constant learning rate its deck may ask for more steps than were done.
bool is_finished(const RunFolder& folder, const std::optional<Trajectory>& found, std::uint32_t steps) {
  std::error_code none;  // nor is an empty file a summary, or a folder of that name
  const std::uintmax_t bytes = fs::file_size(folder.summary(), none);
  return !none && bytes > 0 && (!found || found->steps.size() >= steps);
}

/// Where the best model is, after a line that says which it is.
std::string best_place(const RunConfig& config, const RunFolder& folder, const RunEvaluations& evaluations) {
  if (evaluations.best()->step == 0) return ", the base model: no later one was better";
  if (evaluations.best_is_written()) return "; it is in " + folder.best_model().string();
  return config.model.random() ? "" : "; not written, but export --step writes it";
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

}  // namespace

ExitCode train_command(const TrainOptions& options, const RunConfig& config) {
  // 1. The run's folder, and what was done there already.
  if (!config.data.trains())
    throw Error(ExitCode::usage, fmt::format("{}: data/train: is missing, and training needs it; accepted: a path",
                                             options.deck.deck.string()));
  Progress progress(config.output.log_every, config.zo.steps);
  check_output_place(config);
  std::optional<RunFolder> existing;
  std::optional<RunLock> lock;
  if (options.resume)
    existing = existing_run_folder(config, options.deck.deck);
  else
    check_no_run(config);
  if (existing) lock.emplace(*existing);
  if (existing && lock->problem().empty()) remove_leftovers(*existing);
  std::optional<Trajectory> found;
  if (existing && fs::exists(existing->trajectory())) found = read_trajectory(existing->trajectory());
  if (found) check_same_mathematics(found->header, config, existing->trajectory());
  if (existing && is_finished(*existing, found, config.zo.steps)) {
    progress.say(fmt::format("{} is finished: {}", existing->path.string(), existing->summary().string()));
    return ExitCode::done;
  }

  // 2. Data, and where everything will be.
  const StopSignals signals;
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_data(config, model, Sets::all);
  const MemoryPlan plan = plan_here(config, model, data);
  if (found && found->steps.size() > config.zo.steps)
    throw Error(ExitCode::usage, fmt::format("zo/steps: {}, but {} holds {}; accepted: that many and more",
                                             config.zo.steps, existing->trajectory().string(), found->steps.size()));

  // 3. The model. What goes to disk needs the run's folder; otherwise there is none before all has been read.
  std::optional<RunFolder> made = existing;
  fs::path store;
  if (plan.disk_bytes > 0) {
    if (!made) {
      check_scratch({config, model, table, data}, plan);
      made = new_run_folder(config, options.deck.deck);
    }
    if (!lock) lock.emplace(*made);
    store = store_folder(config, *made);
  }
  if (plan.placement.streams_any())
    for (const std::string& line : plan_lines({config, model, table, data}, plan)) progress.say(line);
  PlacedModel placed(config, model, plan, config.precision.compute, store,
                     found ? static_cast<std::uint32_t>(found->steps.size()) : 0, &progress);
  Engine* const engine = &placed.engine();
  const TrajectoryHeader header = trajectory_header(
      config, data, *engine, placed.is_advanced() ? found->header.theta0_digest : engine->store().digest());

  // 4. A new trajectory, or the found one.
  const RunFolder folder = made ? *made : new_run_folder(config, options.deck.deck);
  if (!lock) lock.emplace(folder);
  std::vector<StepRecord> records;
  std::vector<DigestRecord> digests;
  std::unique_ptr<TrajectoryWriter> trajectory;
  if (found) {
    if (const std::string note = check_same_run(found->header, header, config, folder.trajectory()); !note.empty())
      progress.say("note     " + note);
    check_same_evaluations(folder, data);
    if (found->torn)
      progress.say(fmt::format("note     {}: what stands after step {} was not whole and is cut off",
                               folder.trajectory().string(), found->steps.size()));
    replace_text_file(folder.deck(), resolved_deck_yaml(config));
    trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), *found, config.checkpoint.trajectory_sync_s);
    records = std::move(found->steps);
    digests = std::move(found->digests);
  } else {
    replace_text_file(folder.deck(), resolved_deck_yaml(config));
    trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), header, config.checkpoint.trajectory_sync_s);
  }
  placed.write_after(*trajectory);
  MetricsFile metrics(folder.metrics(), records);

  // 5. What the run is, in a few lines.
  progress.say(fmt::format("run      {}", folder.path.string()));
  progress.say(fmt::format("model    {}", describe(model, engine->store().table())));
  progress.say(fmt::format("data     train {}{}{}", data.train->source, data.dev ? "; dev " + data.dev->source : "",
                           data.test ? "; test " + data.test->source : ""));
  for (const std::string& note : notes_of(data, config.zo.batch)) progress.say("note     " + note);
  for (const std::string& note : notes_of_unused_keys(config, plan)) progress.say("note     " + note);
  progress.say(fmt::format(
      "store    {} resident{}{}", short_bytes(static_cast<double>(plan.resident_bytes)),
      plan.host_bytes > 0 ? fmt::format(", {} staged", short_bytes(static_cast<double>(plan.host_bytes))) : "",
      plan.disk_bytes > 0 ? fmt::format(", {} on disk", short_bytes(static_cast<double>(plan.disk_bytes))) : ""));
  progress.say(fmt::format("compute  {}; resumed on this instruction set and GEMM, the run keeps its bits",
                           describe_compute(config.precision.compute)));
  if (!lock->problem().empty()) progress.say("note     " + lock->problem());
  if (writes_models(config, engine->store()))
    if (const std::string problem = export_problem(engine->store()); !problem.empty())
      progress.say(
          fmt::format("warning  final/ and best/ cannot be written as it stands: {}; store in bf16 or fp32, or "
                      "set output/write models to never",
                      problem));
  TimeLeft time_left(work_of(config, data));
  RunEvaluations evaluations(config, data, folder, *engine, *trajectory, metrics, progress, signals, time_left);
  if (!records.empty()) {
    if (!evaluations.reported(0) && (data.test || data.dev) && !placed.is_advanced()) evaluations.at(0, false);
    replay(*engine, records);
    progress.say(fmt::format("resumed  after step {}, by replay", records.size()));
  }

  // 6. The steps.
  LaneLog lanes(config, *engine);
  Training training{config,
                    data,
                    *engine,
                    *trajectory,
                    metrics,
                    progress,
                    signals,
                    std::move(records),
                    [&](std::uint32_t t) { return evaluations.at(t, false); },
                    lanes,
                    time_left};
  const StopReason end = train(training);
  trajectory->sync();
  lanes.close();
  placed.sync();
  const auto stopped = [&](StopReason reason) {
    progress.say(fmt::format("stopped  at the {} after step {}; go on with --resume auto",
                             reason == StopReason::signal ? "signal" : "time limit", training.records.size()));
    return ExitCode::stopped;
  };
  if (end != StopReason::finished) return stopped(end);

  // 7. The result.
  const std::uint64_t theta_digest = engine->store().digest();
  if (digests.empty() || digests.back().t != config.zo.steps)
    trajectory->append(DigestRecord{config.zo.steps, theta_digest});
  else if (digests.back().theta_digest != theta_digest)
    throw Error(ExitCode::internal,
                fmt::format("{}: the replay of step {} has digest {:016x}, the run had {:016x}",
                            folder.trajectory().string(), config.zo.steps, theta_digest, digests.back().theta_digest));
  trajectory->sync();
  if (!evaluations.at(config.zo.steps, true)) return stopped(stop_request(signals, config.checkpoint).value());
  const bool writes = writes_models(config, engine->store());
  if (writes) evaluations.write_model(folder.final_model());
  if (config.precision.storage != Storage::fp32) {
    const RoundingReport& rounding = engine->store().rounding();
    const double noise = rounding.accumulated_noise() / config.zo.epsilon;
    progress.say(fmt::format(
        "rounding {:.3f} of the updates arrived; its noise adds up to {:.3f} epsilon{}", rounding.realised_share(),
        noise, noise > 1 ? ": more than the perturbation itself; store in fp32 or round less often" : ""));
  }
  trajectory->check_in_place();
  const auto first = evaluations.reported(0), last = evaluations.reported(config.zo.steps);
  write_summary(folder, training, placed, theta_digest, evaluations);
  if (!config.memory.keep_store) placed.remove_store();
  if (first && last)
    progress.say(fmt::format("result   accuracy {:.4f} -> {:.4f}, loss {:.4f} -> {:.4f}", first->accuracy,
                             last->accuracy, first->loss, last->loss));
  if (const auto& best = evaluations.best())
    progress.say(fmt::format("best     step {} on dev: accuracy {:.4f}, loss {:.4f}{}", best->step,
                             best->result.accuracy, best->result.loss, best_place(config, folder, evaluations)));
  progress.say(fmt::format("done     {}", folder.summary().string()));
  if (evaluations.models_problem().empty())
    if (const std::string next = next_command(config, folder, plan, last.has_value(), writes); !next.empty())
      progress.say(next);
  if (last && !std::isfinite(last->loss))
    throw Error(ExitCode::diverged,
                fmt::format("{}: the loss of the last evaluation is not finite: the model gives no answers any more. "
                            "Lower zo/learning rate, or set zo/non-finite to stop",
                            folder.summary().string()));
  if (!evaluations.models_problem().empty())
    throw Error(ExitCode::file,
                evaluations.models_problem() + "; the rest of the run is whole: summary, metrics and trajectory");
  return ExitCode::done;
}

}  // namespace distzo2
