// SPDX-License-Identifier: BSD-3-Clause
#include "app/summary.hpp"

#include "app/build_info.hpp"
#include "app/machine.hpp"
#include "core/kokkos_scope.hpp"
#include "core/step.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"
#include "parallel/communicator.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

Json object_of(const std::optional<EvaluationResult>& r) {
  if (!r) return nullptr;
  return {{"accuracy", r->accuracy}, {"loss", r->loss}, {"examples", r->examples}, {"confusion", r->confusion}};
}

/// The best step on the dev set, and whether best/ holds it; null where there is no dev set.
Json best_object(const RunEvaluations& evaluations) {
  const auto& best = evaluations.best();
  if (!best) return nullptr;
  Json object{{"step", best->step}, {"set", best->set}, {"in_folder_best", evaluations.best_is_written()}};
  object.update(object_of(best->result));
  return object;
}

/// What 16-bit storage made of the updates; null in fp32.
Json rounding_object(const Training& training) {
  ParameterStore& store = training.engine.store();
  if (store.rule().storage == Storage::fp32) return nullptr;
  const RoundingReport& r = store.rounding();
  return {{"realised_share", r.realised_share()},
          {"accumulated_noise_in_epsilon", r.accumulated_noise() / training.config.zo.epsilon}};
}

/// Whether the deck's `expected` values were reached; null where it states none.
Json expectations(const ExpectedSection& expected, const std::optional<EvaluationResult>& final) {
  if (!expected.accuracy_at_least && !expected.final_loss_at_most) return nullptr;
  return missed_expectations(expected, final).empty();
}

/// PertP x DDP and each rank's place and needs.
Json layout_object(const Layout& layout, const std::vector<RankSummary>& ranks, const std::vector<RankPlace>& places) {
  Json object{{"pertp", layout.pertp},
              {"ddp", layout.ddp},
              {"order", layout.order == PertpOrder::inner ? "pertp inner" : "ddp inner"}};
  if (ranks.size() == 1) return object;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    object["ranks"].push_back({{"host", places[r].host},
                               {"cores", places[r].cores},
                               {"numa_nodes", places[r].nodes},
                               {"device", places[r].device},
                               {"threads", ranks[r].threads},
                               {"peak_host_bytes", ranks[r].peak_host_bytes}});
  return object;
}

/// What the exchange costs a step, and how long each rank waits for the others before; null on one rank.
Json exchange_object(const Training& training, const std::vector<RankSummary>& ranks, double step_s) {
  if (training.exchanges.empty()) return nullptr;
  Json object{{"bytes_per_step", training.exchanges.back().bytes},
              {"seconds_per_step", ranks.front().exchange_s},
              {"share_of_step", ranks.front().exchange_s / step_s}};
  for (const RankSummary& r : ranks) object["waiting_seconds_per_step"].push_back(r.waiting_s);
  return object;
}

}  // namespace

std::vector<RankSummary> rank_summaries(Communicator& world, const Training& training, const PlacedModel& placed) {
  RankSummary mine{peak_resident_bytes(),
                   placed.bytes_read(),
                   placed.bytes_written(),
                   static_cast<std::uint64_t>(host_concurrency()),
                   0.0,
                   0.0};
  std::vector<double> exchange, waiting;
  for (std::size_t i = training.exchanges.size() / 2; i < training.exchanges.size(); ++i) {
    exchange.push_back(training.exchanges[i].seconds);
    waiting.push_back(training.exchanges[i].waiting_s);
  }
  mine.exchange_s = median(exchange);
  mine.waiting_s = median(waiting);
  const std::vector<int> one(static_cast<std::size_t>(world.size()), 1);
  return world.gather(std::span<const RankSummary>(&mine, 1), one);
}

std::vector<std::string> missed_expectations(const ExpectedSection& expected,
                                             const std::optional<EvaluationResult>& final) {
  std::vector<std::string> missed;
  const auto miss = [&](const char* key, double wanted, const char* what, double found) {
    missed.push_back(fmt::format("expected/{}: {}, {}", key, number_text(wanted),
                                 final ? fmt::format("but {} is {:.4f}", what, found) : "but nothing was evaluated"));
  };
  const EvaluationResult result = final.value_or(EvaluationResult{});
  // A loss that is not a number is at most nothing.
  if (const auto at_least = expected.accuracy_at_least; at_least && !(final && result.accuracy >= *at_least))
    miss("accuracy at least", *at_least, "the final accuracy", result.accuracy);
  if (const auto at_most = expected.final_loss_at_most; at_most && !(final && result.loss <= *at_most))
    miss("final loss at most", *at_most, "the final loss", result.loss);
  return missed;
}

void write_summary(const RunFolder& folder, const Training& training, const PlacedModel& placed,
                   std::uint64_t theta_digest, const RunEvaluations& evaluations, const std::vector<RankSummary>& ranks,
                   const std::vector<RankPlace>& places) {
  const auto final = evaluations.reported(training.config.zo.steps);
  const std::string models_problem = evaluations.models_problem();
  const std::vector<RecordedStep> steps = recorded_steps(folder.metrics());
  std::vector<double> seconds, rates;  // of the last half, whichever process did them
  for (std::size_t i = steps.size() / 2; i < steps.size(); ++i) {
    seconds.push_back(steps[i].seconds);
    rates.push_back(steps[i].tokens / steps[i].seconds);
  }
  std::uint64_t bytes_read = 0, bytes_written = 0;
  for (const RankSummary& r : ranks) {
    bytes_read += r.bytes_read;
    bytes_written += r.bytes_written;
  }
  const Engine& engine = training.engine;
  const Json summary{{"ended", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
                     {"steps", training.records.size()},
                     {"initial", object_of(evaluations.reported(0))},
                     {"final", object_of(final)},
                     {"best", best_object(evaluations)},
                     {"expected_reached", expectations(training.config.expected, final)},
                     {"tokens_per_second", median(rates)},
                     {"seconds_per_step", median(seconds)},
                     {"peak_host_bytes", peak_resident_bytes()},
                     {"peak_device_bytes", placed.device_bytes()},
                     {"stored_parameter_bytes", engine.store().bytes()},
                     {"activation_bytes", engine.activation_bytes()},
                     {"allocated_parameter_bytes", engine.store().memory_bytes()},
                     {"bytes_read", bytes_read},  // from the disk tier, and written to it, by all ranks
                     {"bytes_written", bytes_written},
                     {"lanes", lanes_object(training.lanes.last_half())},
                     {"theta_digest", fmt::format("{:016x}", theta_digest)},
                     {"trajectory_digest", fmt::format("{:016x}", trajectory_digest(training.records))},
                     {"rounding", rounding_object(training)},
                     {"models_not_written", models_problem.empty() ? Json() : Json(models_problem)},
                     {"layout", layout_object(training.layout, ranks, places)},
                     {"exchange", exchange_object(training, ranks, median(seconds))},
                     {"arithmetic", engine.arithmetic_fingerprint()},
                     {"git_hash", build_git_hash()},
                     {"machine", machine_object()}};
  replace_text_file(folder.summary(), json_text(summary) + "\n");
}

}  // namespace distzo2
