// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_folder.hpp"

#include "app/run_lock.hpp"
#include "core/error.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"
#include "io/regular_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// A larger one is no number that was counted up to.
constexpr int last_run_number = 999'999'999;

std::string run_name(const std::string& prefix, int number) {
  return fmt::format("{}{:03}", prefix, number);
}

/// What is named as a run of the deck, the newest first; deck-1 and deck-0001 are no names that a run gets.
std::map<int, fs::path, std::greater<>> runs_of(const fs::path& runs, const std::string& prefix) {
  std::map<int, fs::path, std::greater<>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runs, error)) {
    const std::string name = entry.path().filename().string();
    const int number = number_after(name, prefix);
    if (number > 0 && number <= last_run_number && name == run_name(prefix, number))
      found.emplace(number, entry.path());
  }
  return found;
}

int newest_number(const fs::path& runs, const std::string& prefix) {
  const auto found = runs_of(runs, prefix);
  return found.empty() ? 0 : found.begin()->first;
}

/// Whether a folder holds what a run leaves: more than the lock of one that ended before it had begun.
bool holds_something(const RunFolder& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path, error))
    if (entry.path() != folder.lock()) return true;
  return false;
}

std::string run_prefix(const fs::path& deck) {
  return deck.stem().string() + "-";
}

bool holds_run(const fs::path& folder) {
  return fs::exists(folder / "trajectory.zoj") || fs::exists(folder / "summary.json") ||
         fs::exists(folder / "deck.yaml");
}

}  // namespace

int number_after(const std::string& name, const std::string& prefix) {
  int number = -1;
  if (!name.starts_with(prefix) || name.find_first_not_of("0123456789", prefix.size()) != std::string::npos) return -1;
  const char* const end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && last == end ? number : -1;
}

void check_no_run(const RunConfig& config) {
  const fs::path& folder = config.output.folder;
  if (!folder.empty() && holds_run(folder))
    throw Error(
        ExitCode::usage,
        fmt::format("output/folder: {} holds a run already; give --resume auto to go on with it, or another folder",
                    folder.string()));
}

RunFolder new_run_folder(const RunConfig& config, const fs::path& deck) {
  std::error_code error;
  if (!config.output.folder.empty()) {
    const fs::path& folder = config.output.folder;
    check_no_run(config);
    fs::create_directories(folder, error);
    if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
    return {folder};
  }
  const fs::path runs = fs::current_path() / "runs";
  fs::create_directories(runs, error);
  if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", runs.string(), error.message()));
  for (int number = newest_number(runs, run_prefix(deck)) + 1;; ++number) {
    const fs::path folder = runs / run_name(run_prefix(deck), number);
    if (fs::create_directory(folder, error)) return {folder};  // false where another run just took this number
    if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  }
}

std::optional<RunFolder> run_of_deck(const fs::path& deck) {
  const RunFolder folder{fs::absolute(deck).lexically_normal().parent_path()};
  if (deck.filename() != folder.deck().filename() || !fs::exists(folder.trajectory())) return std::nullopt;
  return folder;
}

ExistingRun existing_run_folder(const RunConfig& config, const fs::path& deck) {
  ExistingRun existing;
  if (!config.output.folder.empty()) {
    if (fs::exists(config.output.folder)) existing.folder = RunFolder{config.output.folder};
    return existing;
  }
  std::error_code error;
  for (const auto& [number, path] : runs_of(fs::current_path() / "runs", run_prefix(deck))) {
    if (fs::is_directory(path, error) && (holds_something({path}) || is_worked_on({path}))) {
      existing.folder = RunFolder{path};
      break;
    }
    existing.passed_over.push_back(path);
  }
  return existing;
}

void check_run_files(const RunFolder& folder) {
  const auto check = [](const fs::path& file) {
    if (std::error_code none; fs::exists(fs::symlink_status(file, none))) expect_regular_file(file);
  };
  for (const fs::path& file :
       {folder.deck(), folder.metrics(), folder.trajectory(), folder.summary(), folder.changes(), folder.lock()})
    check(file);
  try {
    check(folder.store_record());
  } catch (const Error& e) {
    throw Error(e.code(),
                fmt::format("{}; remove it: a run's file of this name only tells where its stores were", e.what()));
  }
}

FoundSummary find_summary(const RunFolder& folder, std::uint64_t steps_done) {
  FoundSummary summary;
  std::error_code error;
  summary.there = fs::exists(folder.summary(), error);
  if (summary.there) try {
      const nlohmann::json json = read_json_file(folder.summary());
      const JsonObject object(json, folder.summary().string());
      const auto steps = static_cast<std::uint64_t>(object.integer("steps", 0));
      if (steps != steps_done)
        summary.problem = fmt::format("{}: it is of {} step{}, and the trajectory has {}", folder.summary().string(),
                                      steps, steps == 1 ? "" : "s", steps_done);
      summary.commit = object.string_or("git_hash", "");
      summary.ended = object.string_or("ended", "");
    } catch (const Error& problem) {
      summary.problem = problem.what();
    }
  return summary;
}

void remove_numbered_leftovers(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> leftovers;
  std::error_code none;  // what cannot be seen or removed is in nobody's way
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();  // ".step-300.partial-17-1"
    const std::size_t dot = name.find('.', 1);
    if (dot != std::string::npos && number_after(name.substr(1, dot - 1), prefix) >= 0 &&
        is_made_beside(folder / name.substr(1, dot - 1), name))
      leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, none);
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path, error))
    for (const fs::path& target : {folder.deck(), folder.metrics(), folder.trajectory(), folder.summary(),
                                   folder.changes(), folder.store_record(), folder.final_model(), folder.best_model()})
      if (is_made_beside(target, entry.path().filename().string())) fs::remove_all(entry.path(), error);
  remove_numbered_leftovers(folder.path, RunFolder::set_aside_prefix);
  remove_numbered_leftovers(folder.checkpoints(), RunFolder::checkpoint_prefix);
}

}  // namespace distzo2
