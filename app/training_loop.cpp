// SPDX-License-Identifier: BSD-3-Clause
#include "app/training_loop.hpp"

#include "app/step_losses.hpp"
#include "app/step_setup.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/step.hpp"
#include "parallel/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace distzo2 {
namespace {

void refuse_non_finite(const StepRecord& r) {
  throw Error(ExitCode::diverged, fmt::format("step {}: {}; theta is unchanged. Lower zo/learning rate, or set "
                                              "zo/non-finite to skip such steps",
                                              r.t + 1, non_finite_part(r)));
}

/// Notices that g is exactly 0 in most steps: hardly anything is learnt then, and no loss shows it.
class ZeroWatch {
public:
  static constexpr int window = 20, most = 15;
  /// True once in a run: at the first record after which `most` of the last `window` steps had no other g.
  bool push(const StepRecord& r) {
    const bool zero = std::ranges::all_of(r.g_raw, [](double g) { return g == 0; });
    zeros_ = (zeros_ << 1 | std::uint32_t{zero}) & ((1U << window) - 1);
    return std::popcount(zeros_) == most && !std::exchange(seen_, true);
  }

private:
  std::uint32_t zeros_ = 0;  // a bit a step
  bool seen_ = false;
};

void refuse_divergence(const DivergenceWatch& watch, std::size_t steps, double factor) {
  if (!watch.diverged()) return;
  throw Error(ExitCode::diverged,
              std::isnan(watch.last_mean())
                  ? fmt::format("step {}: no loss of the last {} steps is finite; lower zo/learning rate", steps,
                                DivergenceWatch::window)
                  : fmt::format("step {}: the mean loss of the last {} steps, {:.4f}, is more than zo/diverged factor "
                                "= {} times that of the first, {:.4f}; lower zo/learning rate",
                                steps, DivergenceWatch::window, watch.last_mean(), factor, watch.first_mean()));
}

}  // namespace

std::string non_finite_part(const StepRecord& r) {
  const bool losses = std::ranges::all_of(r.losses, [](double l) { return std::isfinite(l); });
  return losses ? fmt::format("the losses {} are finite, but the update's factor made of them is not (g = {})",
                              fmt::join(r.losses, ", "), fmt::join(r.g_raw, ", "))
                : fmt::format("a loss is not finite ({})", fmt::join(r.losses, ", "));
}

StopReason train(Training& training) {
  const ZoSection& zo = training.config.zo;
  const std::vector<Example>& examples = training.data.train->examples;
  auto [rule, sampler, perturbation] = step_setup(zo, examples.size());
  const Share mine = share(training.layout, training.world.rank());
  Exchange exchange(training.world, training.layout);
  GradientClip clip(zo.clip);
  DivergenceWatch watch(zo.diverged_factor);
  ZeroWatch zeros;
  for (const StepRecord& r : training.records) {  // their state is a function of the records
    clip.push(r.g_raw);
    watch.push(r.losses);
    zeros.push(r);
  }
  refuse_divergence(watch, training.records.size(), zo.diverged_factor);

  bool said_first = false;
  for (auto t = static_cast<std::uint32_t>(training.records.size()); t < zo.steps; ++t) {
    const auto step_started = Clock::now();
    // 1. The batch: a pure function of (seed, t).
    const std::vector<std::uint32_t> batch = sampler.indices(t);

    // 2. This rank's evaluations of its sequences, forward together under W = theta + s eps z(t, k).
    perturbation.t = t;
    ComputedLosses computed =
        compute_losses(training.engine, examples, batch, mine, perturbation, training.data.objective);

    // 3. Scalars are all that ranks exchange.
    StepLosses& losses = computed.share;
    losses.flags |=
        stop_flags(stop_request(training.signals, training.config.checkpoint, training.checkpoints.estimate_s()));
    if (training.checkpoints.minutes_are_over()) losses.flags |= checkpoint_due_flag;
    exchange(losses);

    // 4. g and c, formed once, in double.
    StepOutcome outcome = make_step_record(rule, t, learning_rate(zo, t), static_cast<float>(zo.weight_decay),
                                           losses.losses, losses.counts, clip.limit());
    StepRecord& record = outcome.record;
    if (!outcome.finite && zo.non_finite == NonFinite::stop) refuse_non_finite(record);

    // 5. theta is still theta_t: the update is deferred to the next pass over each block. The evaluations of theta_t
    //    come after its first step, so that a run shows a step within seconds of its start.
    const double step_s = seconds_since(step_started);
    if (!std::exchange(said_first, true))
      training.progress.say(fmt::format("first step after {:.2f} s", seconds_since_process_start()));
    if (const auto stop = training.evaluation_point(t)) return *stop;

    // 6. The record is the update: on disk first, then pending for every tensor.
    training.keep_record(record);
    training.engine.store().append(record);
    clip.push(record.g_raw);
    watch.push(record.losses);
    training.records.push_back(record);

    training.lanes.after_step();

    // 7. Say so.
    const std::uint64_t tokens = step_tokens(examples, batch, training.data.objective);
    const bool several = training.world.size() > 1;
    if (several) training.exchanges.push_back(exchange.last());
    training.metrics.step(record, reported_loss(record), tokens, step_s, several ? &exchange.last() : nullptr);
    training.time_left.step(step_s, tokens);
    training.progress.step(t, reported_loss(record), record.g.front(), tokens, step_s,
                           training.time_left.seconds(t + 1));
    if (!outcome.finite)
      training.progress.say(fmt::format("step {}: {}; the step is skipped", t + 1, non_finite_part(record)));
    if (zeros.push(record))
      training.progress.say(fmt::format(
          "warning  step {}: g was exactly 0 in {} of the last {} steps: perturbations of epsilon = {} hardly ever "
          "change the loss, and nothing is learnt. Either the model gives the same loss whatever its "
          "weights are (lower zo/learning rate), or epsilon is too small for the precision (raise "
          "zo/epsilon)",
          t + 1, ZeroWatch::most, ZeroWatch::window, zo.epsilon));

    // 8. Stop?
    refuse_divergence(watch, training.records.size(), zo.diverged_factor);
    if (const auto stop = stop_reason(losses.flags)) return *stop;
    training.consistency_point(t + 1);
    training.checkpoints.after_step(t + 1, (losses.flags & checkpoint_due_flag) != 0,
                                    seconds_to_end(training.signals, training.config.checkpoint));
  }
  return StopReason::finished;
}

}  // namespace distzo2
