// SPDX-License-Identifier: BSD-3-Clause
#include "app/output_place.hpp"

#include "core/error.hpp"
#include "io/checkpoint_writer.hpp"
#include "io/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& key, const std::string& problem) {
  throw Error(ExitCode::usage, fmt::format("{}: {}", key, problem));
}

fs::path output_folder(const RunConfig& config) {
  return config.output.folder.empty() ? fs::current_path() / "runs" : config.output.folder;
}

/// Nothing that the deck's commands read, and no file of another kind.
void check_replaced(const OutputKind& kind, const fs::path& file, const RunConfig& config) {
  std::vector<fs::path> inputs{config.deck, config.data.task, config.data.train, config.data.dev, config.data.test};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(config.model.folder, error))
    inputs.push_back(entry.path());
  for (const fs::path& input : inputs)
    if (!input.empty() && fs::equivalent(file, input, error))
      refuse(kind.key, fmt::format("{} is {}, which is read; name another file", file.string(), input.string()));
  if (fs::is_directory(file, error)) refuse(kind.key, fmt::format("{} is a folder; name a file", file.string()));
  if (fs::is_regular_file(file, error) && !kind.holds(file))
    refuse(kind.key,
           fmt::format("{} exists already and does not hold {}; name another file", file.string(), kind.contents));
}

void check_parent(const OutputKind& kind, const fs::path& file) {
  std::error_code error;
  if (!file.has_filename() || !fs::is_directory(fs::absolute(file).parent_path(), error))
    refuse(kind.key,
           fmt::format("{} is to be written into a folder that does not exist; make it first", file.string()));
}

void check_trace_place(const RunConfig& config) {
  const fs::path &file = config.output.trace_file, &model = config.model.folder, output = output_folder(config);
  if (file.empty()) return;
  const OutputKind kind{"output/trace file", "a timeline", holds_trace};
  if (!model.empty() && lies_within(file, model))
    refuse(kind.key,
           fmt::format("{} lies in the model's folder {}; name a file outside", file.string(), model.string()));
  check_replaced(kind, file, config);
  const RunFolder run{file.parent_path()};
  for (const fs::path& own : {run.deck(), run.metrics(), run.trajectory(), run.summary()})
    if (file == own && lies_within(file, output))
      refuse(kind.key, fmt::format("{} is what the run itself writes; name another file", file.string()));
  if (run.path != config.output.folder) check_parent(kind, file);  // that one the run makes
}

/// A folder that is to be made or is one: not a file, nor a link to nothing.
void check_folder_place(const char* key, const fs::path& folder) {
  std::error_code none;
  if (folder.empty() || fs::is_directory(folder, none)) return;
  if (fs::exists(folder, none)) refuse(key, fmt::format("{} is no folder; name one", folder.string()));
  if (fs::is_symlink(folder, none))
    refuse(key, fmt::format("{} is a link to {}, which is not there; make that folder, or name another one",
                            folder.string(), fs::read_symlink(folder, none).string()));
}

}  // namespace

bool lies_within(const fs::path& path, const fs::path& folder) {
  const fs::path inner = fs::weakly_canonical(path), outer = fs::weakly_canonical(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

void check_scratch_place(const RunConfig& config) {
  const fs::path &scratch = config.memory.scratch_folder, &model = config.model.folder;
  check_folder_place("memory/scratch folder", scratch);
  if (!scratch.empty() && !model.empty() && lies_within(scratch, model))
    refuse("memory/scratch folder",
           fmt::format("{} lies in the model's folder {}; name one outside", scratch.string(), model.string()));
}

void check_model_places(const RunFolder& run, const RunConfig& config) {
  if (config.model.random() || config.output.write_models == WriteModels::never) return;
  for (const fs::path& place : {run.final_model(), run.best_model()}) try {
      check_model_place(place, config.model.folder, true);
    } catch (const Error& e) {
      refuse("output/folder", e.what());
    }
}

void check_output_place(const RunConfig& config) {
  check_scratch_place(config);
  check_folder_place("output/folder", config.output.folder);
  check_trace_place(config);
  const fs::path &model = config.model.folder, output = output_folder(config);
  if (model.empty()) return;
  if (lies_within(output, model))
    refuse("output/folder",
           fmt::format("{} lies in the model's folder {}; name one outside", output.string(), model.string()));
  if (config.output.folder.empty()) return;
  if (lies_within(model, output))
    refuse("output/folder",
           fmt::format("the model's folder {} lies in {}; name another folder", model.string(), output.string()));
  for (const fs::path& file : {config.data.train, config.data.dev, config.data.test})
    if (!file.empty() && fs::weakly_canonical(file).parent_path() == fs::weakly_canonical(output))
      refuse("output/folder",
             fmt::format("{} is the folder of the data, {}; name another folder", output.string(), file.string()));
  check_model_places({output}, config);
}

void check_output_file(const OutputKind& kind, const fs::path& file, const RunConfig& config) {
  check_replaced(kind, file, config);
  check_parent(kind, file);
}

}  // namespace distzo2
