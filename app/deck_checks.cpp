// SPDX-License-Identifier: BSD-3-Clause
#include "app/deck_checks.hpp"

#include "app/build_info.hpp"
#include "app/step_setup.hpp"
#include "core/error.hpp"
#include "core/model_shapes.hpp"

#include <fmt/format.h>

#include <utility>

namespace distzo2 {
namespace {

/// A model comes from a folder, or from a shape with random weights.
void check_model(const RunConfig& c, const Deck& deck) {
  const ModelSection& m = c.model;
  if (!m.folder.empty() && !m.shape.empty()) {
    refuse_key(deck, "model/shape", "stands beside model/folder; accepted: one of the two");
  }
  if (m.folder.empty() && m.shape.empty()) {
    refuse_key(deck, "model/folder", "is missing; accepted: a model's folder, or model/shape with weights: random");
  }
  if (!m.folder.empty()) {
    for (const auto& [key, given] : {std::pair{"model/weights", m.random()}, std::pair{"model/seed", m.seed != 0},
                                     std::pair{"model/tied head", m.tied_head.has_value()}}) {
      if (given) refuse_key(deck, key, "is for a model without a folder; leave it out, or name model/shape instead");
    }
    return;
  }
  if (!m.random()) {
    refuse_key(deck, "model/weights", "a shape has no weights of its own; accepted with model/shape: random");
  }
  if (const FamilyKind family = model_shape(m.shape).family; m.family && *m.family != family) {
    refuse_key(deck, "model/family", fmt::format("{} is of the family {}", m.shape, name_of(family)));
  }
  if (!c.data.random_tokens()) {
    refuse_key(deck, "data/task",
               "a model without a folder has no tokenizer; accepted with model/shape: random tokens");
  }
  if (c.output.write_models == WriteModels::always) {
    refuse_key(deck, "output/write models",
               "a model without a folder is not written: deck and trajectory give it again; leave this out");
  }
}

/// Random tokens come from no file and are for the language-model loss alone.
void check_random_tokens(const RunConfig& c, const Deck& deck) {
  for (const auto& [key, file] : {std::pair{"data/train", c.data.train}, std::pair{"data/dev", c.data.dev},
                                  std::pair{"data/test", c.data.test}}) {
    if (!file.empty()) refuse_key(deck, key, "random tokens come from no file; leave it out");
  }
  if (c.data.dev_examples.value_or(0) > 0) {
    refuse_key(deck, "data/dev examples", "random tokens have no dev set; leave it out");
  }
  if (c.zo.objective == Objective::classification) {
    refuse_key(deck, "zo/objective", "random tokens have no candidates; accepted: language model");
  }
}

void check_memory(const RunConfig& c, const Deck& deck) {
  const MemorySection& m = c.memory;
  if (m.device_budget && m.staging != Staging::always && !built_for_device()) {
    refuse_key(deck, "memory/device budget",
               "this program computes on CPUs, whose memory is the host's; set memory/host budget, or staging: always");
  }
  const std::uint32_t rounding = c.precision.storage == Storage::fp32 ? 1 : c.precision.round_every;
  if (m.write_back_every && *m.write_back_every % rounding != 0) {
    refuse_key(deck, "memory/write back every",
               fmt::format("{} is no multiple of precision/round every, {}", *m.write_back_every, rounding));
  }
}

/// A layout that no number of ranks makes fit.
void check_parallel(const RunConfig& c, const Deck& deck) {
  const Layout layout = layout_of(c, static_cast<int>(c.parallel.pertp));
  try {
    check_layout(layout, layout.pertp * layout.ddp);
  } catch (const Error& e) {
    refuse_key(deck, layout.evaluations % layout.pertp != 0 ? "parallel/pertp" : "parallel/ddp", e.what());
  }
}

}  // namespace

void check_deck(const RunConfig& c, const Deck& deck) {
  const auto same = [](const auto& a, const auto& b) { return !a.empty() && a == b; };
  check_model(c, deck);
  check_memory(c, deck);
  check_parallel(c, deck);
  if (c.data.random_tokens()) {
    check_random_tokens(c, deck);
  } else if (c.data.sequence_length) {
    refuse_key(deck, "data/sequence length", "is for random tokens; other tasks have data/max length");
  }
  if (!c.data.trains() && c.data.dev.empty() && c.data.test.empty()) {
    refuse_key(deck, "data", "names no data; accepted: at least one of train, dev, test");
  }
  if (same(c.data.test, c.data.train) || same(c.data.test, c.data.dev)) {
    refuse_key(deck, "data/test",
               "is also the file of train or dev; test data are never used for training or selection: leave one out");
  }
  if (same(c.data.dev, c.data.train)) {
    refuse_key(deck, "data/dev",
               "is also the training file; leave it out and set \"dev examples\", which draws examples not trained on");
  }
  if (c.data.dev.empty() && c.data.train.empty() && c.data.dev_examples.value_or(0) > 0) {
    refuse_key(deck, "data/dev examples", "there is neither a dev nor a training file to draw them from");
  }
  if (c.zo.warm_up >= c.zo.steps) {
    refuse_key(deck, "zo/warm-up",
               fmt::format("{} steps leave none of the {} steps after it; accepted: less than steps", c.zo.warm_up,
                           c.zo.steps));
  }
  if (c.zo.learning_rate * c.zo.weight_decay >= 1.0) {
    refuse_key(deck, "zo/weight decay",
               fmt::format("{} times the learning rate {} is not below 1: it would turn the weights' signs",
                           c.zo.weight_decay, c.zo.learning_rate));
  }
  if (c.zo.diverged_factor > 0.0 && c.zo.diverged_factor <= 1.0) {
    refuse_key(deck, "zo/diverged factor",
               fmt::format("{} would stop a run that does not diverge; accepted: above 1, or 0 for never",
                           c.zo.diverged_factor));
  }
  if (!c.precision.reproducible && !built_for_device()) {
    refuse_key(
        deck, "precision/reproducible",
        "false has no meaning here: on CPUs equal bits on any layout and thread count cost nothing; leave it out");
  }
  if (c.precision.storage == Storage::fp32 && c.precision.round_every != 1) {
    refuse_key(deck, "precision/round every",
               "nothing is rounded in fp32 storage; leave it out, or set storage to bf16 or fp16");
  }
}

}  // namespace distzo2
