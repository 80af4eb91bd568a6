// SPDX-License-Identifier: BSD-3-Clause
#include "app/open_run.hpp"

#include "app/output_place.hpp"
#include "app/resume.hpp"
#include "core/error.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

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

}  // namespace

RunConfig for_resume(const TrainOptions& options, RunConfig config) {
  if (!options.resume || config.output.folder_by_option) return config;
  if (const auto own = run_of_deck(options.deck.deck)) config.output.folder = own->path;
  return config;
}

OpenRun find_run(const TrainOptions& options, const RunConfig& config, Progress& progress) {
  OpenRun run;
  if (!options.resume) {
    check_no_run(config);
    return run;
  }
  const ExistingRun existing = existing_run_folder(config, options.deck.deck);
  run.folder = existing.folder;
  for (const fs::path& path : existing.passed_over)
    progress.say(fmt::format("note     {} {} and is passed over", path.string(),
                             fs::is_directory(path) ? "holds no run" : "is no folder"));
  if (run.folder) {
    check_run_files(*run.folder);
    check_model_places(*run.folder, config);
    run.lock = std::make_unique<RunLock>(*run.folder);
    if (run.lock->problem().empty()) remove_leftovers(*run.folder);
    if (fs::exists(run.folder->trajectory())) run.found = read_trajectory(run.folder->trajectory());
  }
  if (run.found) check_same_mathematics(run.found->header, config, run.folder->trajectory());
  if (run.folder) {
    run.summary = find_summary(*run.folder, run.steps_done());
    check_summary(run, progress);
  }
  if (is_finished(run, config.zo.steps)) return run;
  progress.say(run.found ? fmt::format("resuming {}, which has {} step{}", run.folder->path.string(), run.steps_done(),
                                       run.steps_done() == 1 ? "" : "s")
                         : "note     there is no run of this deck to go on with: a new one begins");
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
  const double sync_s = config.checkpoint.trajectory_sync_s;
  if (!run.found) {
    replace_text_file(folder.deck(), resolved_deck_yaml(config));
    auto trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), header, sync_s);
    return {{}, {}, std::move(trajectory), MetricsFile(folder.metrics(), {})};
  }
  Trajectory& found = *run.found;
  if (const std::string note = check_same_run(found.header, header, config, folder.trajectory()); !note.empty())
    progress.say("note     " + note);
  check_same_evaluations(folder, data);
  if (found.torn)
    progress.say(fmt::format("note     {}: what stands after step {} was not whole and is cut off",
                             folder.trajectory().string(), found.steps.size()));
  remove_summary(folder);
  replace_text_file(folder.deck(), resolved_deck_yaml(config));
  auto trajectory = std::make_unique<TrajectoryWriter>(folder.trajectory(), found, sync_s);
  MetricsFile metrics(folder.metrics(), found.steps);
  return {std::move(found.steps), std::move(found.digests), std::move(trajectory), std::move(metrics)};
}

}  // namespace distzo2
