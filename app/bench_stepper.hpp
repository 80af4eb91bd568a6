// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/run_config.hpp"
#include "app/step_losses.hpp"
#include "app/step_setup.hpp"
#include "core/clock.hpp"
#include "core/engine.hpp"
#include "core/error.hpp"
#include "core/gemm_peak.hpp"
#include "core/z_alone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

namespace distzo2 {

/// The data of a bench of steps. Throws Error (usage) where the deck names no training data.
inline LoadedData load_bench_data(const std::filesystem::path& deck, const RunConfig& config, const ModelConfig& model,
                                  std::string_view bench) {
  LoadedData data = load_data(config, model, Sets::all);
  if (!data.train) throw Error(ExitCode::usage, fmt::format("{}: {} needs data/train", deck.string(), bench));
  return data;
}

/// One step's parts, in seconds of wall time, and what is measured beside it.
struct StepParts {
  double wall = 0;
  PassTimes pass;
  ZAlone z;
  double gemm_alone_flops = 0;
  double tokens = 0;
  double loss = 0;
  double z_s() const { return z.passes_s + z.lookups_s; }
  double update_s() const { return std::max(0.0, pass.weights_s - z.passes_s); }
  double writes_s() const { return pass.gemm_s - pass.product_s; }
};

/// Steps of the deck's run, each followed by its update, which the next one's pass applies.
class Stepper {
public:
  Stepper(const RunConfig& config, const LoadedData& data, Engine& engine)
      : config_(config),
        data_(data),
        engine_(engine),
        setup_(step_setup(config.zo, data.train->examples.size())),
        layout_(layout_of_one(config)) {
    engine.time_products();
  }

  StepParts step() {
    const std::uint32_t t = engine_.store().next_step();
    engine_.take_times();
    const auto start = Clock::now();
    const ComputedLosses computed = losses(t);
    StepOutcome outcome =
        make_step_record(setup_.rule, t, learning_rate(config_.zo, t), static_cast<float>(config_.zo.weight_decay),
                         computed.share.losses, computed.share.counts, INFINITY);
    engine_.store().append(outcome.record);
    StepParts parts;
    parts.wall = seconds_since(start);
    parts.loss = reported_loss(outcome.record);
    parts.pass = engine_.take_times();
    parts.tokens = static_cast<double>(computed.tokens);
    return parts;
  }

  /// What z and the GEMM calls of such a step take where nothing else is done.
  void measure_alone(StepParts& parts) const {
    parts.z = z_alone(engine_.config(), setup_.perturbation);
    parts.gemm_alone_flops = gemm_rate_alone(engine_.config(), config_.precision.compute,
                                             static_cast<int>(parts.tokens) * layout_.evaluations);
  }

  /// g of every direction of step t, without an update.
  std::vector<double> gradients(std::uint32_t t) {
    const ComputedLosses computed = losses(t);
    return projected_gradients(setup_.rule.difference, setup_.rule.epsilon,
                               mean_losses(computed.share.losses, computed.share.counts));
  }

private:
  ComputedLosses losses(std::uint32_t t) {
    setup_.perturbation.t = t;
    return compute_losses(engine_, data_.train->examples, setup_.sampler.indices(t), share(layout_, 0),
                          setup_.perturbation, data_.objective);
  }

  const RunConfig& config_;
  const LoadedData& data_;
  Engine& engine_;
  StepSetup setup_;
  Layout layout_;
};

}  // namespace distzo2
