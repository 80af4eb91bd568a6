// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"
#include "core/engine.hpp"
#include "core/example.hpp"
#include "core/layout.hpp"
#include "core/precision.hpp"
#include "parallel/exchange.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace distzo2 {

class Communicator;  // parallel/communicator.hpp

/// A rank's share of a step's losses and what computing it took.
struct ComputedLosses {
  StepLosses share;
  std::uint64_t tokens = 0;  // of the share's sequences, each counted once
};

/// l[e, b] and n[b] (design section 1) of this rank's evaluations and sequences: all go forward together. `order`
/// gives the order in which the batch's sequences are packed; it changes no bit. StepLosses of the whole step, zero
/// outside the share.
ComputedLosses compute_losses(Engine& engine, std::span<const Example> examples, std::span<const std::uint32_t> batch,
                              const Share& share, const Perturbation& step, Objective objective,
                              std::span<const std::uint32_t> order = {});

/// Accuracy, loss and confusion counts of the model as it is, pending records applied, its passes shared by `ranks`;
/// the same result on all. `go_on(examples done)` is asked between passes and must say the same on all of them; where
/// it says no, the evaluation is given up and nothing is returned. `each`, where given, sees the candidate scores (mean
/// token log-probabilities) of every example of this rank's passes in order.
std::optional<EvaluationResult> evaluate(Engine& engine, std::span<const Example> examples, Objective objective,
                                         Communicator& ranks, const std::function<bool(std::size_t)>& go_on,
                                         const std::function<void(std::span<const double>)>& each = {});
/// By this process alone.
std::optional<EvaluationResult> evaluate(Engine& engine, std::span<const Example> examples, Objective objective,
                                         const std::function<bool(std::size_t)>& go_on,
                                         const std::function<void(std::span<const double>)>& each = {});

/// The largest batch that a step or an evaluation of these examples packs: rows and terms.
struct BatchSize {
  int tokens = 0;
  int terms = 0;
};
BatchSize largest_batch(std::span<const Example> examples, std::uint32_t batch, Objective objective);
BatchSize largest_evaluation(std::span<const Example> examples);

/// Tokens that go forward once for all of a step's sequences, whichever ranks have them.
std::uint64_t step_tokens(std::span<const Example> examples, std::span<const std::uint32_t> batch, Objective objective);

/// Passes over the model that an evaluation of these examples takes, and tokens that go forward in it.
std::uint64_t evaluation_passes(std::span<const Example> examples);
std::uint64_t evaluation_tokens(std::span<const Example> examples);

}  // namespace distzo2
