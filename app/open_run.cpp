// SPDX-License-Identifier: BSD-3-Clause
#include "app/open_run.hpp"

#include "app/output_place.hpp"
#include "app/resume.hpp"
#include "app/set_aside.hpp"
#include "core/error.hpp"
#include "io/checkpoint_manifest.hpp"
#include "io/output_file.hpp"
#include "io/trajectory_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace distzo2 {

namespace fs = std::filesystem;

namespace {

/// Of a run that goes on it would tell less than what is there.
void remove_summary(const RunFolder& folder) {
  std::error_code error;  // what is no file, or cannot be removed, is in the way of the new one
  if (fs::is_regular_file(folder.summary(), error)) fs::remove(folder.summary(), error);
}

/// Says what is wrong with a summary that is not this run's end. One without a trajectory is of a run that nobody can
/// go on with, and whose models a new one would replace: Error (usage).
void check_summary(const OpenRun& run, Progress& progress) {
  const RunFolder& folder = *run.folder;
  if (run.summary.there && !run.found)
    throw Error(ExitCode::usage,
                fmt::format("{}: it tells of a run, but {} is not there: this run cannot be gone on with. Bring that "
                            "file back, or remove this one to begin a new run in its folder",
                            folder.summary().string(), folder.trajectory().filename().string()));
  if (!run.summary.problem.empty())
    progress.say(
        fmt::format("note     {}: it is no end of this run, and goes when the run goes on", run.summary.problem));
}

/// What --resume PATH names.
struct NamedRun {
  RunFolder folder;
  std::optional<std::uint64_t> step;  // of a checkpoint
};
NamedRun named_run(const fs::path& path) {
  std::error_code none;
  const fs::path folder = fs::absolute(path / ".").lexically_normal().parent_path();
  if (fs::exists(RunFolder{folder}.trajectory(), none)) return {RunFolder{folder}, {}};
  if (fs::exists(manifest_file(folder), none)) {
    const RunFolder run{folder.parent_path().parent_path()};  // run/checkpoints/step-300
    if (fs::exists(run.trajectory(), none)) return {run, checkpoint_step(folder)};
    throw Error(ExitCode::usage, fmt::format("--resume {}: is a checkpoint without its run: {} is not there, without "
                                             "which its parameters are of no known step",
                                             path.string(), run.trajectory().string()));
  }
  throw Error(ExitCode::usage,
              fmt::format("--resume {}: holds neither {} nor {}; accepted: auto, a step, or the folder "
                          "of a run or of a checkpoint",
                          path.string(), RunFolder{path}.trajectory().filename().string(),
                          manifest_file(path).filename().string()));
}

/// The folder and the step that --resume means. Where a run is to begin with the steps of another one, that is
/// `run.source`.
std::optional<std::uint64_t> choose_run(const TrainOptions& options, const RunConfig& config, OpenRun& run,
                                        Progress& progress) {
  if (options.resume_path.empty()) {
    const ExistingRun existing = existing_run_folder(config, options.deck.deck);
    run.folder = existing.folder;
    for (const fs::path& path : existing.passed_over)
      progress.say(fmt::format("note     {} {} and is passed over", path.string(),
                               fs::is_directory(path) ? "holds no run" : "is no folder"));
    return options.resume_step;
  }
  const NamedRun named = named_run(options.resume_path);
  std::error_code none;
  if (config.output.folder.empty() || fs::equivalent(named.folder.path, config.output.folder, none)) {
    run.folder = named.folder;
  } else {
    check_no_run(config);
    run.source = named.folder;
  }
  return named.step;
}

/// Leaves the later records of the found run out.
void cut_to(OpenRun& run, std::uint64_t step) {
  if (!run.found || step > run.found->steps.size())
    throw Error(ExitCode::usage, run.found
                                     ? fmt::format("--resume {}: {} has {} steps; accepted: 0 to that", step,
                                                   run.origin().trajectory().string(), run.found->steps.size())
                                     : fmt::format("--resume {}: there is no run of this deck to go on with", step));
  Trajectory& found = *run.found;
  run.steps_set_aside = static_cast<std::uint32_t>(found.steps.size() - step);
  const std::size_t records = found.steps.size() + found.digests.size();
  found.steps.resize(step);
  std::erase_if(found.digests, [&](const DigestRecord& d) { return d.t > step; });
  found.whole_bytes -= (records - found.steps.size() - found.digests.size()) * record_size(found.header);
}

}  // namespace

RunConfig for_resume(const TrainOptions& options, RunConfig config) {
  if (!options.resume || config.output.folder_by_option) return config;
  if (const auto own = run_of_deck(options.deck.deck)) config.output.folder = own->path;
  return config;
}

OpenRun find_run(const TrainOptions& options, const RunConfig& config, Progress& progress) {
  OpenRun run;
  check_change_names(options.changes);
  run.changes.names = options.changes;
  if (!options.resume) {
    check_no_run(config);
    return run;
  }
  const std::optional<std::uint64_t> step = choose_run(options, config, run, progress);
  if (run.folder) {
    check_run_files(*run.folder);
    check_model_places(*run.folder, config);
    run.lock = std::make_unique<RunLock>(*run.folder);
    if (run.lock->problem().empty()) remove_leftovers(*run.folder);
  }
  if ((run.folder || run.source) && fs::exists(run.origin().trajectory()))
    run.found = read_trajectory(run.origin().trajectory());
  if (step) cut_to(run, *step);
  if (run.found) {
    run.changes.recorded = recorded_changes(run.origin().changes(), run.steps_done());
    check_same_mathematics(run.found->header, config, run.origin().trajectory(), run.steps_done(), run.changes);
  }
  if (run.folder && run.steps_set_aside == 0) {
    run.summary = find_summary(*run.folder, run.steps_done());
    check_summary(run, progress);
  }
  if (is_finished(run, config.zo.steps)) return run;
  if (!run.found)
    progress.say("note     there is no run of this deck to go on with: a new one begins");
  else
    progress.say(fmt::format("resuming {}, which has {} step{}{}", run.origin().path.string(),
                             run.steps_done() + run.steps_set_aside,
                             run.steps_done() + run.steps_set_aside == 1 ? "" : "s",
                             run.steps_set_aside == 0 ? "" : fmt::format(", from step {}", run.steps_done())));
  return run;
}

bool is_finished(const OpenRun& run, std::uint32_t steps) {
  // With a constant learning rate a finished run's deck may ask for more steps than were done.
  return run.found && run.summary.is_end() && run.steps_done() >= steps;
}

const RunFolder& make_folder(OpenRun& run, const TrainOptions& options, const RunConfig& config) {
  if (!run.folder) {
    run.folder = new_run_folder(config, options.deck.deck);
    check_run_files(*run.folder);
  }
  if (!run.lock) run.lock = std::make_unique<RunLock>(*run.folder);
  return *run.folder;
}

std::vector<TrajectoryWriter*> RunFiles::writers() const {
  std::vector<TrajectoryWriter*> list;
  for (TrajectoryWriter* writer : {trajectory.get(), copy.get()})
    if (writer != nullptr) list.push_back(writer);
  return list;
}

RunFiles records_of(OpenRun& run) {
  RunFiles files;
  if (!run.found) return files;
  files.records = std::move(run.found->steps);
  files.digests = std::move(run.found->digests);
  return files;
}

RunFiles open_files(OpenRun& run, const TrajectoryHeader& header, const RunConfig& config, const LoadedData& data,
                    Progress& progress) {
  const RunFolder& folder = run.folder.value();
  const RunFolder& origin = run.origin();
  const double sync_s = config.checkpoint.trajectory_sync_s;
  if (!run.found) {
    replace_text_file(folder.deck(), resolved_deck_yaml(config));
    auto trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), header, sync_s);
    return {{}, {}, std::move(trajectory), nullptr, MetricsFile(folder.metrics(), {})};
  }
  Trajectory& found = *run.found;
  const std::string note =
      check_same_run(found.header, header, config, origin.trajectory(), run.steps_done(), run.changes);
  if (!note.empty()) progress.say("note     " + note);
  if (std::ranges::find(run.changes.to_record, training_examples, &RecordedChange::key) == run.changes.to_record.end())
    check_same_evaluations(origin, data);
  if (found.torn)
    progress.say(fmt::format("note     {}: what stands after step {} was not whole and is cut off",
                             origin.trajectory().string(), found.steps.size()));
  if (run.steps_set_aside > 0 && !run.source)
    progress.say(fmt::format("note     the run's later {} step{} are kept in {}", run.steps_set_aside,
                             run.steps_set_aside == 1 ? "" : "s", set_aside(folder, run.steps_done()).string()));
  remove_summary(folder);
  replace_text_file(folder.deck(), resolved_deck_yaml(config));
  for (const RecordedChange& c : run.changes.to_record)
    progress.say(fmt::format("changed  {} from step {} on: {} was {}", c.key, c.step, c.to, c.from));
  if (!run.changes.all().empty() || fs::exists(folder.changes())) write_changes(folder.changes(), run.changes.all());
  if (run.source) take_records(*run.source, folder, found);
  if (!run.taken.empty()) replace_text_file(folder.trajectory(), run.taken);
  auto trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), found, sync_s);
  MetricsFile metrics(folder.metrics(), found.steps);
  return {std::move(found.steps), std::move(found.digests), std::move(trajectory), nullptr, std::move(metrics)};
}

}  // namespace distzo2
