// SPDX-License-Identifier: BSD-3-Clause
#include "app/bench_stepper.hpp"
#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/lane_log.hpp"
#include "app/machine.hpp"
#include "app/memory_budget.hpp"
#include "app/placed_model.hpp"
#include "app/progress.hpp"
#include "core/error.hpp"
#include "io/json_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

double mean(std::span<const double> x) {
  return std::reduce(x.begin(), x.end()) / static_cast<double>(x.size());
}

}  // namespace

const char* const bench_speed_text =
    "tokens a second as ZO2's authors measure them: all steps of the deck's run, the mean over the last half of them; "
    "with the memory taken and what each lane of a streamed model did";

ExitCode bench_speed_command(const BenchSpeedOptions& options, const RunConfig& config) {
  // 1. The deck's run on its tiers.
  const ModelConfig model = model_config(config.model);
  const LoadedData data = load_bench_data(options.deck.deck, config, model, "bench speed");
  const MemoryPlan plan = plan_here(config, model, data);
  Progress progress(config.output.log_every, config.zo.steps, !options.deck.json);
  TemporaryModel placed(config, model, plan, config.precision.compute, &progress);

  // 2. All steps; what is reported is of the last half.
  Stepper stepper(config, data, placed.engine());
  LaneLog lanes(config, placed.engine());
  std::vector<double> seconds, tokens, losses;
  for (std::uint32_t t = 0; t < config.zo.steps; ++t) {
    progress.working(fmt::format("step {} of {}", t + 1, config.zo.steps));
    const StepParts step = stepper.step();
    lanes.after_step();
    seconds.push_back(step.wall);
    tokens.push_back(step.tokens);
    losses.push_back(step.loss);
  }
  lanes.close();
  progress.end();
  const std::size_t first = seconds.size() / 2;
  const std::span<const double> times = std::span(seconds).subspan(first), counts = std::span(tokens).subspan(first);
  const auto [fastest, slowest] = std::ranges::minmax(times);

  // 3. One object.
  const Json result{{"model", describe(model, tensor_table(model))},
                    {"steps", config.zo.steps},
                    {"tokens_per_step", mean(counts)},
                    {"tokens_per_second", mean(counts) / mean(times)},
                    {"step_s", {{"mean", mean(times)}, {"min", fastest}, {"max", slowest}}},
                    {"first_loss", losses.front()},
                    {"last_loss", losses.back()},
                    {"peak_device_bytes", placed.device_bytes()},
                    {"peak_host_bytes", peak_resident_bytes()},
                    {"planned_device_bytes", plan.total(MemoryPlace::device)},
                    {"resident_bytes", plan.resident_bytes},
                    {"streamed_from_host_bytes", plan.host_bytes},
                    {"streamed_from_disk_bytes", plan.disk_bytes},
                    {"lanes", lanes_object(lanes.last_half())},
                    {"arithmetic", placed.engine().arithmetic_fingerprint()},
                    {"git_hash", build_git_hash()},
                    {"machine", machine_object()}};
  if (options.deck.json) {
    fmt::print("{}\n", json_text(result));
    return ExitCode::done;
  }
  const std::uint64_t device = placed.device_bytes();
  fmt::print("{}: {:.1f} tokens/s, {:.4f} s a step ({:.4f} to {:.4f}), {}{} on the host\n",
             result["model"].get<std::string>(), result["tokens_per_second"].get<double>(), mean(times), fastest,
             slowest, device > 0 ? bytes_text(device) + " on the device, " : "", bytes_text(peak_resident_bytes()));
  return ExitCode::done;
}

}  // namespace distzo2
