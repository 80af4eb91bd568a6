// SPDX-License-Identifier: BSD-3-Clause
#include "app/base_storage.hpp"
#include "app/commands.hpp"
#include "app/model_export.hpp"
#include "app/output_place.hpp"
#include "app/progress.hpp"
#include "app/replay_source.hpp"
#include "app/resume.hpp"
#include "core/engine.hpp"
#include "core/error.hpp"
#include "io/hf_config.hpp"
#include "io/json_file.hpp"
#include "io/trajectory_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace distzo2 {

ExitCode export_command(const ExportOptions& options) {
  namespace fs = std::filesystem;
  // 1. The trajectory and its base model.
  const ReplaySource source = find_replay(options.trajectory, options.model);
  const Trajectory& found = source.found;
  const fs::path& file = source.file;
  if (source.model.random())
    throw Error(ExitCode::usage, fmt::format("{}: the run began with random weights (model/shape {}); only a model "
                                             "from a folder is exported",
                                             file.string(), source.model.shape));
  const fs::path& base = source.model.folder;
  const std::uint32_t last = static_cast<std::uint32_t>(found.steps.size());
  if (options.step && *options.step > last)
    throw Error(ExitCode::usage, fmt::format("--step {}: {} has {} step{}; accepted: 0 to {}", *options.step,
                                             file.string(), last, last == 1 ? "" : "s", last));
  const auto step = static_cast<std::uint32_t>(options.step.value_or(last));
  if (std::error_code none; fs::exists(fs::symlink_status(options.output, none)))  // a link to nothing too
    throw Error(ExitCode::usage, fmt::format("--output: {} exists already", options.output.string()));
  if (const fs::path parent = fs::absolute(options.output / "").parent_path().parent_path(); !fs::is_directory(parent))
    throw Error(ExitCode::usage, fmt::format("--output: there is no folder {} to write {} into; make it first",
                                             parent.string(), options.output.string()));
  if (lies_within(options.output, base))
    throw Error(ExitCode::usage, fmt::format("--output: {} lies in the base model's folder {}; name one outside",
                                             options.output.string(), base.string()));

  // 2. theta_0, checked to be the one that the run began with. Nothing of the model is kept in memory: each piece is
  //    read from the base model and brought to the step as it is written.
  const UpdateRule& rule = found.header.rule;
  const TensorTable table = tensor_table(read_model_config(base));
  BaseStorage storage(base_weights(source), table, rule.storage);
  const std::unique_ptr<ParameterStore> store = replaying_store(storage, table, rule);
  if (store->digest() != found.header.theta0_digest)
    throw Error(ExitCode::file,
                fmt::format("{}: its weights are not those that {} began with", base.string(), file.string()));
  check_same_decay(found.header, decay_mask_digest(table), file);
  if (found.torn && !options.json)
    fmt::print("note      {}: what stands after step {} is not whole and is left out\n", file.string(), last);
  for (std::uint32_t t = 0; t < step; ++t) store->append(found.steps[t]);

  // 3. The folder.
  std::uint64_t digest = 0;
  export_model(*store, base, options.output, IfExists::refuse, [&](std::uint64_t written) {
    digest = written;
    for (const DigestRecord& d : found.digests)
      if (d.t == step) check_replayed(d, digest, file);
  });
  if (options.json)
    fmt::print("{}\n", json_text(nlohmann::ordered_json{{"output", options.output.string()},
                                                        {"step", step},
                                                        {"torn", found.torn},
                                                        {"peak_host_bytes", peak_resident_bytes()},
                                                        {"theta_digest", fmt::format("{:016x}", digest)}}));
  else
    fmt::print("theta after {} steps, digest {:016x}, written to {}\n", step, digest, options.output.string());
  return ExitCode::done;
}

}  // namespace distzo2
