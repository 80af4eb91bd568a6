// SPDX-License-Identifier: BSD-3-Clause
#include "app/bench_stepper.hpp"
#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/machine.hpp"
#include "app/memory_budget.hpp"
#include "app/placed_model.hpp"
#include "app/progress.hpp"
#include "io/json_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

template <class Get>
double median_of(const std::vector<StepParts>& steps, Get get) {
  std::vector<double> values;
  for (const StepParts& s : steps) values.push_back(get(s));
  return median(values);
}

/// rms(g in bf16 compute - g in fp32) over rms(g in fp32), on the model as it is imported.
double bf16_noise(const RunConfig& config, const LoadedData& data, std::uint32_t pairs, Progress& progress) {
  const auto gradients = [&](Compute compute) {
    const ModelConfig model = model_config(config.model);
    TemporaryModel placed(config, model, plan_here(config, model, data), compute, &progress);
    Stepper stepper(config, data, placed.engine());
    std::vector<double> g;
    for (std::uint32_t t = 0; t < pairs; ++t) {
      progress.working(fmt::format("g in {} compute: step {} of {}", name_of(compute), t + 1, pairs));
      for (const double value : stepper.gradients(t)) g.push_back(value);
    }
    return g;
  };
  const std::vector<double> exact = gradients(Compute::fp32), rounded = gradients(Compute::bf16);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += (rounded[i] - exact[i]) * (rounded[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace

const char* const bench_step_text =
    "where the time of a step goes. Medians over the repeats, after a step that warms up. z is made and used within "
    "microseconds, so its time is measured beside each step: z alone, as often and over the same index ranges as the "
    "step makes it, on the same threads; \"update and packing\" is the time in which a step makes weights, less that. "
    "Products and what becomes of them are told apart by reading the clock around each GEMM call, which a training "
    "step does not do. Parts that threads do side by side are means over threads; waiting at their ends is in the "
    "rest, which is the step less the parts: below 0 where z took longer alone than within a step";

ExitCode bench_step_command(const BenchStepOptions& options, const RunConfig& config) {
  // 1. The deck's run, a warm-up step, then the repeats.
  const ModelConfig model = model_config(config.model);
  const LoadedData data = load_bench_data(options.deck.deck, config, model, "bench step");
  std::vector<StepParts> steps;
  Progress progress(config.output.log_every, options.repeats, !options.deck.json);
  {
    progress.working("the model, and a step that warms up");
    TemporaryModel placed(config, model, plan_here(config, model, data), config.precision.compute, &progress);
    Stepper stepper(config, data, placed.engine());
    stepper.step();
    for (std::uint32_t i = 0; i < options.repeats; ++i) {
      progress.working(fmt::format("step {} of {}, and its parts alone", i + 1, options.repeats));
      steps.push_back(stepper.step());
      // Taken in turn with the steps, so that a machine that others share shows both the same mood.
      stepper.measure_alone(steps.back());
    }
  }

  // 2. Medians, their spread and the shares.
  const auto part = [&](auto get) { return median_of(steps, get); };
  const double wall = part([](const StepParts& s) { return s.wall; });
  const double rate = part([](const StepParts& s) { return s.pass.gemm_flop / s.pass.product_s; });
  const double peak = part([](const StepParts& s) { return s.gemm_alone_flops; });
  const auto [fastest, slowest] = std::ranges::minmax(steps, {}, &StepParts::wall);
  const Json parts{{"z_s", part([](const StepParts& s) { return s.z_s(); })},
                   {"update_and_packing_s", part([](const StepParts& s) { return s.update_s(); })},
                   {"gemm_s", part([](const StepParts& s) { return s.pass.product_s; })},
                   {"writes_and_softmax_s", part([](const StepParts& s) { return s.writes_s(); })},
                   {"attention_s", part([](const StepParts& s) { return s.pass.attention_s; })},
                   {"norm_s", part([](const StepParts& s) { return s.pass.norm_s; })}};
  double measured = 0;
  for (const Json& seconds : parts) measured += seconds.get<double>();
  Json result{{"model", describe(model, tensor_table(model))},
              {"repeats", options.repeats},
              {"step_s", wall},
              {"step_min_s", fastest.wall},
              {"step_max_s", slowest.wall}};
  result.update(parts);
  result["rest_s"] = wall - measured;
  result.update({{"gemm_gflops", rate * 1e-9},
                 {"gemm_alone_gflops", peak * 1e-9},
                 {"gemm_share_of_alone", rate / peak},
                 {"noise_pairs", options.noise_pairs},
                 {"tokens_per_step", part([](const StepParts& s) { return s.tokens; })},
                 {"tokens_per_second", part([](const StepParts& s) { return s.tokens / s.wall; })},
                 {"peak_host_bytes", peak_resident_bytes()},
                 {"git_hash", build_git_hash()},
                 {"machine", machine_object()}});
  if (options.noise_pairs > 0) result["bf16_noise_of_g"] = bf16_noise(config, data, options.noise_pairs, progress);
  progress.end();
  if (options.deck.json) {
    fmt::print("{}\n", json_text(result));
    return ExitCode::done;
  }
  const auto line = [&](const char* name, const char* key) {
    const double s = result[key].get<double>();
    fmt::print("  {:<44} {:>9.2f} ms {:>6.1f} %\n", name, s * 1e3, 100 * s / wall);
  };
  fmt::print("one step of {}, median of {} ({:.2f} to {:.2f} ms)\n", result["model"].get<std::string>(),
             options.repeats, fastest.wall * 1e3, slowest.wall * 1e3);
  line("z (measured alone, beside the step)", "z_s");
  line("update and packing (making weights, less z)", "update_and_packing_s");
  line("matrix products", "gemm_s");
  line("writing them, the head's softmax", "writes_and_softmax_s");
  line("attention", "attention_s");
  line("norms", "norm_s");
  line("rest", "rest_s");
  line("step", "step_s");
  fmt::print("  matrix products at {:.0f} GF/s; the same shapes alone {:.0f} GF/s: {:.2f} of that\n", rate * 1e-9,
             peak * 1e-9, rate / peak);
  if (options.noise_pairs > 0)
    fmt::print("  noise of g in bf16 compute: {:.3f} of its rms, over {} steps\n",
               result["bf16_noise_of_g"].get<double>(), options.noise_pairs);
  fmt::print("  {:.0f} tokens a step, {:.1f} tokens/s\n", result["tokens_per_step"].get<double>(),
             result["tokens_per_second"].get<double>());
  return ExitCode::done;
}

}  // namespace distzo2
