// SPDX-License-Identifier: BSD-3-Clause
#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/progress.hpp"
#include "app/run_folder.hpp"
#include "app/run_lock.hpp"
#include "app/run_status.hpp"
#include "core/engine.hpp"
#include "core/step.hpp"
#include "io/checkpoint_folder.hpp"
#include "io/checkpoint_tensors.hpp"
#include "io/hf_config.hpp"
#include "io/json_file.hpp"
#include "io/trajectory_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t shown_steps = 20;  // of a long trajectory's table; --json has all

void print_trajectory(const fs::path& path, const Trajectory& t) {
  const TrajectoryHeader& h = t.header;
  fmt::print("trajectory {}\n", path.string());
  fmt::print("  steps {}, seed {}, epsilon {}, directions {}, {}, {} difference{}\n", t.steps.size(), h.rule.seed,
             h.step.epsilon, h.step.directions, name_of(h.rule.kind), name_of(h.step.difference),
             t.torn ? ", the last record torn" : "");
  fmt::print("  base model's digest {:016x}, arithmetic {}\n", h.theta0_digest, h.fingerprint);
  for (const DigestRecord& d : t.digests) fmt::print("  theta after step {}: digest {:016x}\n", d.t, d.theta_digest);
  fmt::print("  digest of steps {:016x}\n{:>8} {:>12} {:>12} {:>14} {:>14}\n", trajectory_digest(t.steps), "t", "lr",
             "loss", "g[1]", "c[1]");
  const std::size_t every = std::max<std::size_t>(1, (t.steps.size() + shown_steps - 1) / shown_steps);
  for (std::size_t i = 0; i < t.steps.size(); i += every) {
    const StepRecord& r = t.steps[i];
    fmt::print("{:>8} {:>12.4g} {:>12.5f} {:>14.6f} {:>14.6g}\n", r.t, r.lr, reported_loss(r), r.g[0], r.c[0]);
  }
}

Json trajectory_object(const Trajectory& t) {
  const TrajectoryHeader& h = t.header;
  Json steps = Json::array(), digests = Json::array();
  for (const StepRecord& r : t.steps)
    steps.push_back(
        {{"t", r.t}, {"lr", r.lr}, {"wd", r.wd}, {"c", r.c}, {"g", r.g}, {"g_raw", r.g_raw}, {"losses", r.losses}});
  for (const DigestRecord& d : t.digests)
    digests.push_back({{"t", d.t}, {"theta_digest", fmt::format("{:016x}", d.theta_digest)}});
  return {{"bytes", t.whole_bytes},
          {"generator", h.generator},
          {"seed", h.rule.seed},
          {"epsilon", h.step.epsilon},
          {"directions", h.step.directions},
          {"kind", name_of(h.rule.kind)},
          {"difference", name_of(h.step.difference)},
          {"objective", name_of(h.objective)},
          {"storage", name_of(h.rule.storage)},
          {"rounding", name_of(h.rule.rounding)},
          {"round_every", h.rule.round_every},
          {"deck_digest", fmt::format("{:016x}", h.deck_digest)},
          {"data_digest", fmt::format("{:016x}", h.data_digest)},
          {"theta0_digest", fmt::format("{:016x}", h.theta0_digest)},
          {"decay_mask", h.decay_mask ? Json(fmt::format("{:016x}", *h.decay_mask)) : Json()},
          {"mathematical_keys", h.mathematical_keys},
          {"arithmetic", h.fingerprint},
          {"torn", t.torn},
          {"trajectory_digest", fmt::format("{:016x}", trajectory_digest(t.steps))},
          {"digests", digests},
          {"steps", steps}};
}

void inspect_model(const fs::path& folder, bool json) {
  const ModelConfig config = read_model_config(folder);
  const TensorTable table = tensor_table(config);
  const CheckpointReader reader(folder);
  check_tensors(reader, config, table);
  if (json) {
    Json tensors = Json::array();
    for (const Tensor& t : table.tensors)
      tensors.push_back({{"name", t.name},
                         {"rows", t.rows},
                         {"cols", t.cols},
                         {"first", t.first},
                         {"block", t.block},
                         {"decayed", t.matrix}});
    fmt::print("{}\n", json_text(Json{{"architecture", config.architecture},
                                      {"parameters", table.parameters},
                                      {"digest", fmt::format("{:016x}", reader.digest())},
                                      {"tensors", tensors}}));
    return;
  }
  const auto count = static_cast<std::uint64_t>(table.parameters);
  fmt::print("model {}: {}\n", folder.string(), describe(config, table));
  fmt::print("  files' digest {:016x}; {} in fp32, {} in 16 bits\n", reader.digest(), bytes_text(4 * count),
             bytes_text(2 * count));
  fmt::print("{:>6} {:>14}  {:<52} {}\n", "block", "first index", "tensor", "shape");
  for (const Tensor& t : table.tensors)
    fmt::print("{:>6} {:>14}  {:<52} {}\n", t.block, t.first, t.name,
               t.matrix ? fmt::format("{} x {}", t.rows, t.cols) : fmt::format("{}", t.cols));
}

}  // namespace

ExitCode inspect_command(const InspectOptions& options) {
  const fs::path& path = options.path;
  if (!fs::exists(path)) throw Error(ExitCode::file, fmt::format("{}: does not exist", path.string()));
  const bool folder = fs::is_directory(path);
  if (folder && fs::exists(path / "config.json")) {
    inspect_model(path, options.json);
    return ExitCode::done;
  }
  const fs::path file = folder ? RunFolder{path}.trajectory() : path;
  // A run makes its folder before its model is read, where that goes to disk.
  const bool importing = folder && !fs::exists(file) && is_worked_on({path});
  if (!fs::exists(file) && !importing)
    throw Error(ExitCode::file,
                fmt::format("{}: neither a run folder (trajectory.zoj), a model folder (config.json) nor "
                            "a trajectory",
                            path.string()));
  const Trajectory found = importing ? Trajectory{} : read_trajectory(file);
  std::optional<RunStatus> status;
  if (folder) status = read_run_status({path}, found);
  if (options.json) {
    Json object = importing ? Json::object() : trajectory_object(found);
    if (status) object["run"] = status_object(*status);
    fmt::print("{}\n", json_text(object));
    return ExitCode::done;
  }
  if (status) {
    fmt::print("run        {}\n", path.string());
    for (const std::string& line : status_lines(*status)) fmt::print("{}\n", line);
  }
  if (!importing) print_trajectory(file, found);
  return ExitCode::done;
}

}  // namespace distzo2
