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
#include "io/disk_speed.hpp"
#include "io/json_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

/// A model of the same shape with few decoder blocks, all resident: what its steps take is computing alone.
struct ShortModel {
  ShortModel(const RunConfig& config, const LoadedData& data, ModelConfig model, std::int64_t layers)
      : engine([&] {
          model.layers = layers;
          auto made = std::make_unique<Engine>(model, update_rule(config), config.precision.compute);
          import_weights(made->store(), random_weights(model, 1));
          return made;
        }()),
        stepper(config, data, *engine) {
    stepper.step();  // warms up, and leaves a record to apply
  }
  std::unique_ptr<Engine> engine;
  Stepper stepper;
};

Json spread(std::vector<double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {{"median", median(values)}, {"min", least}, {"max", most}};
}

}  // namespace

const char* const bench_stream_text =
    "a step of a model on disk against what bounds it, all taken in turn in one run: computing alone (resident models "
    "of the same shape with one and two blocks: a block, times blocks, plus embedding and head), and the step's bytes "
    "over what the same disk moves in the same mix of reads and writes";

ExitCode bench_stream_command(const BenchStreamOptions& options, const RunConfig& config) {
  // 1. The deck's run on its tiers.
  const ModelConfig model = model_config(config.model);
  const TensorTable table = tensor_table(model);
  const LoadedData data = load_bench_data(options.deck.deck, config, model, "bench stream");
  const MemoryPlan plan = plan_here(config, model, data);
  if (plan.disk_bytes == 0)
    throw Error(ExitCode::usage,
                fmt::format("{}: nothing of this model is on disk: it fits {}; lower memory/host budget",
                            options.deck.deck.string(), plan.host_source));
  if (plan.machine == Machine::device)
    throw Error(ExitCode::usage,
                fmt::format("{}: bench stream compares with computing on the host; a device's speed is "
                            "what bench speed measures",
                            options.deck.deck.string()));
  Progress progress(config.output.log_every, options.repeats, !options.deck.json);
  TemporaryModel placed(config, model, plan, config.precision.compute, &progress);
  progress.end();  // a line a turn follows
  Stepper stepper(config, data, placed.engine());
  // Made after the first streamed steps, so that these alone make the peak of memory.
  std::unique_ptr<ShortModel> one, two;
  std::uint64_t peak = 0;

  // 2. In turn: the streamed step, the disk, computing alone.
  const auto moved = static_cast<double>(plan.disk.read + plan.disk.written);
  const DiskMix mix{.read_share = static_cast<double>(plan.disk.read) / moved,
                    .request_bytes = plan.placement.chunks.slot_bytes + page_bytes};
  std::vector<double> disk, block, ends, computing, transfer, steps, ratios;
  LaneLog lanes(config, placed.engine());
  for (std::uint32_t i = 0; i < options.repeats; ++i) {
    // Two steps, the second timed: the first has units that were read ahead in the pause before it.
    stepper.step();
    lanes.leave_out();
    const double step = stepper.step().wall;
    lanes.after_step();
    if (!one) {
      peak = peak_resident_bytes();
      one = std::make_unique<ShortModel>(config, data, model, 1);
      two = std::make_unique<ShortModel>(config, data, model, 2);
    }
    const DiskSpeed speed = measure_disk(config.memory.scratch_folder, mix, std::uint64_t{2} << 30, 2.0);
    const double with_one = one->stepper.step().wall, with_two = two->stepper.step().wall;
    disk.push_back(speed.bytes_per_s());
    block.push_back(std::max(0.0, with_two - with_one));
    ends.push_back(std::max(0.0, with_one - block.back()));
    computing.push_back(block.back() * static_cast<double>(model.layers) + ends.back());
    transfer.push_back(moved / disk.back());
    steps.push_back(step);
    ratios.push_back(step / std::max(computing.back(), transfer.back()));
    const Json turn{{"turn", i + 1},
                    {"step_s", step},
                    {"compute_alone_s", computing.back()},
                    {"transfer_alone_s", transfer.back()},
                    {"step_over_the_larger", ratios.back()}};
    if (options.deck.json)
      fmt::print("{}\n", turn.dump());
    else
      fmt::print("turn {} of {}: step {:.2f} s, computing alone {:.2f} s, its bytes alone {:.2f} s\n", i + 1,
                 options.repeats, step, computing.back(), transfer.back());
    std::fflush(stdout);
  }
  lanes.close();

  // 3. Ratios of each turn, their median and spread.
  const BatchShape shape = largest_passes(config, data).step;
  const Utilisation use = lanes.last_half().value();
  const double disk_peak = median(disk), share = disk_rate(use) / disk_peak;
  const Json result{{"model", describe(model, table)},
                    {"tokens", shape.tokens},
                    {"repeats", options.repeats},
                    {"step_s", spread(steps)},
                    {"compute_alone_s", spread(computing)},
                    {"block_s", spread(block)},
                    {"embedding_and_head_s", spread(ends)},
                    {"disk_bytes_read_a_step", plan.disk.read},
                    {"disk_bytes_written_a_step", plan.disk.written},
                    {"disk_bytes_per_s", spread(disk)},
                    {"transfer_alone_s", spread(transfer)},
                    {"lanes", lanes_object(use)},
                    {"disk_rate_over_peak", share},
                    {"step_over_the_larger", spread(ratios)},
                    {"host_budget_bytes", plan.host_budget},
                    {"planned_host_bytes", plan.total(MemoryPlace::host)},
                    {"peak_host_bytes", peak},
                    {"write_back_every", plan.placement.write_back_every},
                    {"git_hash", build_git_hash()},
                    {"machine", machine_object()}};
  if (options.deck.json) {
    fmt::print("{}\n", result.dump());
    return ExitCode::done;
  }
  const auto line = [&](const char* name, const char* key, double scale, const char* unit) {
    const Json& value = result[key];
    fmt::print("  {:<44} {:>9.3f} {} ({:.3f} to {:.3f})\n", name, value["median"].get<double>() * scale, unit,
               value["min"].get<double>() * scale, value["max"].get<double>() * scale);
  };
  fmt::print("one step of {}, {} tokens, {} from disk, {} to it; medians of {} turns\n",
             result["model"].get<std::string>(), shape.tokens, bytes_text(plan.disk.read),
             bytes_text(plan.disk.written), options.repeats);
  line("step", "step_s", 1, "s");
  line("computing alone", "compute_alone_s", 1, "s");
  line("  a block", "block_s", 1, "s");
  line("  embedding and head", "embedding_and_head_s", 1, "s");
  line("its bytes at the disk's speed", "transfer_alone_s", 1, "s");
  line("the disk, in the same mix", "disk_bytes_per_s", 1e-9, "GB/s");
  fmt::print("  {:<44} {:>9.3f} of that\n", "the disk's rate while the step uses it", share);
  line("step over the larger of the two", "step_over_the_larger", 1, "");
  return ExitCode::done;
}

}  // namespace distzo2
