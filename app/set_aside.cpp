// SPDX-License-Identifier: BSD-3-Clause
#include "app/set_aside.hpp"

#include "core/error.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

void move_into(const fs::path& folder, const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return;
  fs::rename(path, folder / path.filename(), error);
  if (error)
    throw Error(ExitCode::file,
                fmt::format("{}: cannot be moved into {}: {}", path.string(), folder.string(), error.message()));
}

}  // namespace

fs::path set_aside(const RunFolder& folder, std::uint32_t step) {
  const std::optional<RecordedEvaluation> best = best_on_dev(recorded_evaluations(folder.metrics()));
  fs::path place;
  for (int number = 1; place.empty() || fs::exists(place); ++number)
    place = folder.path / fmt::format("{}{:03}", RunFolder::set_aside_prefix, number);
  const fs::path beside = make_folder_beside(place);
  for (const fs::path& file : {folder.trajectory(), folder.metrics(), folder.deck(), folder.changes()})
    if (fs::exists(file)) write_file(beside / file.filename(), read_text_file(file, most_trajectory_bytes));
  sync_folder(beside);
  if (!publish_folder(beside, place))
    throw Error(ExitCode::file, fmt::format("{}: something was made there meanwhile", place.string()));
  move_into(place, folder.summary());
  move_into(place, folder.final_model());
  if (best && best->step > step) move_into(place, folder.best_model());
  sync_folder(place);
  sync_folder(folder.path);
  return place;
}

void take_records(const RunFolder& source, const RunFolder& folder, const Trajectory& found) {
  if (fs::exists(source.metrics()))
    replace_text_file(folder.metrics(), read_text_file(source.metrics(), most_trajectory_bytes));
  // Last: with a trajectory the folder holds a run.
  const std::string bytes = read_text_file(source.trajectory(), most_trajectory_bytes);
  replace_text_file(folder.trajectory(), std::string_view(bytes).substr(0, found.whole_bytes));
  sync_folder(folder.path);
}

}  // namespace distzo2
