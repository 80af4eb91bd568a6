// SPDX-License-Identifier: BSD-3-Clause
#include "app/replay_source.hpp"

#include "app/run_folder.hpp"
#include "core/error.hpp"

#include <fmt/format.h>

namespace distzo2 {

std::string ReplaySource::describe_model() const {
  return model.random() ? "shape " + model.shape : model.folder.string();
}

ReplaySource find_replay(const std::filesystem::path& trajectory, const std::filesystem::path& model) {
  namespace fs = std::filesystem;
  const bool is_run = fs::is_directory(trajectory);
  const RunFolder run{is_run ? trajectory : trajectory.parent_path()};
  ReplaySource source;
  source.file = is_run ? run.trajectory() : trajectory;
  source.found = read_trajectory(source.file);
  source.model.folder = model;
  if (model.empty()) {
    if (!fs::exists(run.deck()))
      throw Error(ExitCode::usage, fmt::format("{}: no {} beside it names the base model: give --model FOLDER",
                                               source.file.string(), run.deck().filename().string()));
    source.model = read_run_config(run.deck()).model;
  }
  return source;
}

WeightSource base_weights(const ReplaySource& source) {
  return source.model.random() ? random_weights(model_config(source.model), source.model.seed)
                               : folder_weights(source.model.folder, source.found.header.rule, true);
}

}  // namespace distzo2
