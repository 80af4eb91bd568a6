// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/model_export.hpp"
#include "app/resume.hpp"
#include "app/run_folder.hpp"
#include "io/json_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace distzo2 {

ExitCode export_command(const ExportOptions& options) {
  namespace fs = std::filesystem;
  // 1. The trajectory and its base model.
  const bool is_run = fs::is_directory(options.trajectory);
  const RunFolder run{is_run ? options.trajectory : options.trajectory.parent_path()};
  const fs::path file = is_run ? run.trajectory() : options.trajectory;
  Trajectory found = read_trajectory(file);
  fs::path base = options.model;
  if (base.empty()) {
    if (!fs::exists(run.deck()))
      throw Error(ExitCode::usage, fmt::format("{}: no {} beside it names the base model: give --model FOLDER",
                                               file.string(), run.deck().filename().string()));
    const ModelSection model = read_run_config(run.deck()).model;
    if (model.random())
      throw Error(ExitCode::usage, fmt::format("{}: the run began with random weights (model/shape {}); only a model "
                                               "from a folder is exported",
                                               file.string(), model.shape));
    base = model.folder;
  }
  const std::uint32_t last = static_cast<std::uint32_t>(found.steps.size());
  const std::uint32_t step = options.step.value_or(last);
  if (step > last) throw Error(ExitCode::usage, fmt::format("--step {}: {} has {} steps", step, file.string(), last));
  if (fs::exists(options.output))
    throw Error(ExitCode::usage, fmt::format("--output: {} exists already", options.output.string()));
  if (const fs::path parent = fs::absolute(options.output / "").parent_path().parent_path(); !fs::is_directory(parent))
    throw Error(ExitCode::usage, fmt::format("--output: there is no folder {} to write {} into; make it first",
                                             parent.string(), options.output.string()));
  if (lies_within(options.output, base))
    throw Error(ExitCode::usage, fmt::format("--output: {} lies in the base model's folder {}; name one outside",
                                             options.output.string(), base.string()));

  // 2. theta_0, checked to be the one that the run began with; then the records, in one pass.
  const std::unique_ptr<Engine> engine = load_engine(base, found.header.rule, Compute::fp32, true);
  if (engine->store().digest() != found.header.theta0_digest)
    throw Error(ExitCode::file,
                fmt::format("{}: its weights are not those that {} began with", base.string(), file.string()));
  check_same_decay(found.header, decay_mask_digest(engine->store().table()), file);
  if (found.torn && !options.json)
    fmt::print("note      {}: what stands after step {} is not whole and is left out\n", file.string(), last);
  found.steps.resize(step);
  replay(*engine, found.steps);
  const std::uint64_t digest = engine->store().digest();
  for (const DigestRecord& d : found.digests)
    if (d.t == step && d.theta_digest != digest)
      throw Error(ExitCode::internal, fmt::format("{}: the replay of step {} has digest {:016x}, the run had {:016x}",
                                                  file.string(), step, digest, d.theta_digest));

  // 3. The folder.
  export_model(*engine, base, options.output, IfExists::refuse);
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"output", options.output.string()},
                                                        {"step", step},
                                                        {"torn", found.torn},
                                                        {"theta_digest", fmt::format("{:016x}", digest)}}));
  else
    fmt::print("theta after {} steps, digest {:016x}, written to {}\n", step, digest, options.output.string());
  return ExitCode::done;
}

}  // namespace distzo2
