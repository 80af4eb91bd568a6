// SPDX-License-Identifier: BSD-3-Clause
#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/loading.hpp"
#include "app/machine.hpp"
#include "app/progress.hpp"
#include "app/step_losses.hpp"
#include "core/gemm_peak.hpp"
#include "core/sampler.hpp"
#include "core/step.hpp"
#include "io/hf_config.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace distzo2 {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

/// One step's parts, in seconds of wall time.
struct StepParts {
  double wall = 0, weights = 0, gemm = 0, attention = 0, norm = 0;
  double gemm_flop = 0;
  double tokens = 0;
  double rest() const { return std::max(0.0, wall - weights - gemm - attention - norm); }
};

/// Steps of the deck's run, each followed by its update, which the next one's pass applies.
class Stepper {
public:
  Stepper(const RunConfig& config, const LoadedData& data, Engine& engine)
      : config_(config),
        data_(data),
        engine_(engine),
        rule_{config.zo.difference, static_cast<int>(config.zo.directions), config.zo.epsilon},
        sampler_(config.zo.seed, static_cast<int>(config.zo.batch),
                 static_cast<std::uint32_t>(data.train->examples.size())),
        perturbation_{config.zo.seed, 0, config.zo.kind,
                      step_evaluations(rule_.difference, rule_.directions, rule_.epsilon)} {}

  StepParts step() {
    const std::uint32_t t = engine_.store().next_step();
    engine_.take_times();
    const auto start = Clock::now();
    const ComputedLosses computed = losses(t);
    StepOutcome outcome =
        make_step_record(rule_, t, learning_rate(config_.zo, t), static_cast<float>(config_.zo.weight_decay),
                         computed.share.losses, computed.share.counts, INFINITY);
    engine_.store().append(outcome.record);
    StepParts parts;
    parts.wall = std::chrono::duration<double>(Clock::now() - start).count();
    const PassTimes times = engine_.take_times();
    parts.weights = times.weights_s;
    parts.gemm = times.gemm_s;
    parts.attention = times.attention_s;
    parts.norm = times.norm_s;
    parts.gemm_flop = times.gemm_flop;
    parts.tokens = static_cast<double>(computed.tokens);
    return parts;
  }

  /// g of every direction of step t, without an update.
  std::vector<double> gradients(std::uint32_t t) {
    const ComputedLosses computed = losses(t);
    return projected_gradients(rule_.difference, rule_.epsilon,
                               mean_losses(computed.share.losses, computed.share.counts));
  }

  int evaluations() const { return static_cast<int>(perturbation_.evaluations.size()); }

private:
  ComputedLosses losses(std::uint32_t t) {
    perturbation_.t = t;
    const Layout layout{1, 1, PertpOrder::inner, static_cast<int>(perturbation_.evaluations.size()),
                        static_cast<int>(config_.zo.batch)};
    return compute_losses(engine_, data_.train->examples, sampler_.indices(t), share(layout, 0), perturbation_,
                          data_.objective);
  }

  const RunConfig& config_;
  const LoadedData& data_;
  Engine& engine_;
  StepRule rule_;
  Sampler sampler_;
  Perturbation perturbation_;
};

template <class Get>
double median_of(const std::vector<StepParts>& steps, Get get) {
  std::vector<double> values;
  for (const StepParts& s : steps) values.push_back(get(s));
  return median(values);
}

/// rms(g in bf16 compute - g in fp32) over rms(g in fp32), on the model as it is imported.
double bf16_noise(const RunConfig& config, const LoadedData& data, std::uint32_t pairs) {
  const auto gradients = [&](Compute compute) {
    const auto engine =
        load_engine(config.model.folder, update_rule(config), compute, config.model.allow_non_finite_weights);
    Stepper stepper(config, data, *engine);
    std::vector<double> g;
    for (std::uint32_t t = 0; t < pairs; ++t)
      for (const double value : stepper.gradients(t)) g.push_back(value);
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

ExitCode bench_step_command(const BenchStepOptions& options) {
  // 1. The deck's run, a warm-up step, then the repeats.
  const RunConfig config = read_run_config(options.deck.deck, options.deck.sets);
  const ModelConfig model = read_model_config(config.model.folder);
  const LoadedData data = load_data(config, model, Sets::all);
  if (!data.train)
    throw Error(ExitCode::usage, fmt::format("{}: bench step needs data/train", options.deck.deck.string()));
  std::vector<StepParts> steps;
  std::vector<double> alone;  // FLOP/s of the same GEMM calls
  {
    const auto engine = load_engine(config.model.folder, update_rule(config), config.precision.compute,
                                    config.model.allow_non_finite_weights);
    Stepper stepper(config, data, *engine);
    stepper.step();
    for (std::uint32_t i = 0; i < options.repeats; ++i) {
      steps.push_back(stepper.step());
      // Taken in turn with the steps, so that a machine that others share shows both the same mood.
      alone.push_back(gemm_rate_alone(model, config.precision.compute,
                                      static_cast<int>(steps.back().tokens) * stepper.evaluations()));
    }
  }
  const double noise = bf16_noise(config, data, options.noise_pairs);

  // 2. Medians, their spread and the shares.
  const auto part = [&](auto get) { return median_of(steps, get); };
  const double wall = part([](const StepParts& s) { return s.wall; });
  const double gemm = part([](const StepParts& s) { return s.gemm; });
  const double peak = median(alone);
  const double rate = part([](const StepParts& s) { return s.gemm_flop / s.gemm; });
  double fastest = wall, slowest = wall;
  for (const StepParts& s : steps) {
    fastest = std::min(fastest, s.wall);
    slowest = std::max(slowest, s.wall);
  }
  const Json result{{"model", describe(model, tensor_table(model))},
                    {"repeats", options.repeats},
                    {"step_s", wall},
                    {"step_min_s", fastest},
                    {"step_max_s", slowest},
                    {"weights_s", part([](const StepParts& s) { return s.weights; })},
                    {"gemm_s", gemm},
                    {"attention_s", part([](const StepParts& s) { return s.attention; })},
                    {"norm_s", part([](const StepParts& s) { return s.norm; })},
                    {"rest_s", part([](const StepParts& s) { return s.rest(); })},
                    {"gemm_gflops", rate * 1e-9},
                    {"gemm_alone_gflops", peak * 1e-9},
                    {"gemm_share_of_alone", rate / peak},
                    {"bf16_noise_of_g", noise},
                    {"noise_pairs", options.noise_pairs},
                    {"tokens_per_step", part([](const StepParts& s) { return s.tokens; })},
                    {"tokens_per_second", part([](const StepParts& s) { return s.tokens / s.wall; })},
                    {"peak_host_bytes", peak_resident_bytes()},
                    {"git_hash", build_git_hash()},
                    {"machine", machine_object()}};
  if (options.deck.json) {
    fmt::print("{}\n", result.dump(2));
    return ExitCode::done;
  }
  const auto line = [&](const char* name, const char* key) {
    const double s = result[key].get<double>();
    fmt::print("  {:<34} {:>9.2f} ms {:>6.1f} %\n", name, s * 1e3, 100 * s / wall);
  };
  fmt::print("one step of {}, median of {} ({:.2f} to {:.2f} ms)\n", result["model"].get<std::string>(),
             options.repeats, fastest * 1e3, slowest * 1e3);
  line("z, update and perturbed weights", "weights_s");
  line("matrix products", "gemm_s");
  line("attention", "attention_s");
  line("norms", "norm_s");
  line("rest", "rest_s");
  line("step", "step_s");
  fmt::print("  matrix products at {:.0f} GF/s; the same shapes alone {:.0f} GF/s: {:.2f} of that\n", rate * 1e-9,
             peak * 1e-9, rate / peak);
  fmt::print("  noise of g in bf16 compute: {:.3f} of its rms, over {} steps\n", noise, options.noise_pairs);
  fmt::print("  {:.0f} tokens a step, {:.1f} tokens/s\n", result["tokens_per_step"].get<double>(),
             result["tokens_per_second"].get<double>());
  return ExitCode::done;
}

}  // namespace distzo2
