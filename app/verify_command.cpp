// SPDX-License-Identifier: BSD-3-Clause
#include "app/base_storage.hpp"
#include "app/commands.hpp"
#include "app/progress.hpp"
#include "app/replay_source.hpp"
#include "app/resume.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/replay.hpp"
#include "io/json_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

/// A digest that the trajectory has, and the one that a replay gives.
struct Check {
  std::uint64_t record = 0;  // from 1; 0: the header
  std::uint32_t step = 0;
  std::uint64_t stored = 0, replayed = 0;
  bool equal() const { return stored == replayed; }
  std::string place() const { return record == 0 ? "header" : fmt::format("record {}", record); }
};

std::vector<Check> stored_digests(const Trajectory& found) {
  std::vector<Check> checks{{0, 0, found.header.theta0_digest, 0}};
  for (std::size_t i = 0; i < found.digests.size(); ++i)  // before it stand a record a step, and the other digests
    checks.push_back({found.digests[i].t + i + 1, found.digests[i].t, found.digests[i].theta_digest, 0});
  return checks;
}

struct Verification {
  std::vector<Check> checks;
  std::uint32_t most_between = 0, after_last = 0;  // steps
  double seconds = 0;                              // of the replay
  bool equal() const { return std::ranges::all_of(checks, &Check::equal); }
};

Verification verify(const ReplaySource& source, bool speaks) {
  Progress progress({}, 0, speaks);
  const Trajectory& found = source.found;
  const UpdateRule& rule = found.header.rule;
  const TensorTable table = tensor_table(model_config(source.model));
  BaseStorage storage(base_weights(source), table, rule.storage);
  const std::unique_ptr<ParameterStore> theta0 = replaying_store(storage, table, rule);
  const auto told = [&](const char* what) {
    return [shown = shown_by(&progress), what](std::uint64_t done, std::uint64_t total) {
      shown(what, sizeof(float) * done, sizeof(float) * total);
    };
  };
  Verification result{.checks = stored_digests(found)};
  std::vector<std::uint32_t> steps;
  for (const Check& c : result.checks) {
    if (!steps.empty()) result.most_between = std::max(result.most_between, c.step - steps.back());
    steps.push_back(c.step);
  }
  result.after_last = static_cast<std::uint32_t>(found.steps.size()) - steps.back();
  // theta_0 by itself: on another base model no replay is worth its time.
  result.checks.front().replayed =
      replayed_digests(*theta0, found.steps, std::span(steps).first(1), told("reading the base model")).front();
  if (!result.checks.front().equal()) {
    result.checks.resize(1);
    return result;
  }
  check_same_decay(found.header, decay_mask_digest(table), source.file);
  const auto start = Clock::now();
  const auto replayed = replayed_digests(*theta0, found.steps, std::span(steps).subspan(1), told("replaying"));
  result.seconds = seconds_since(start);
  for (std::size_t i = 0; i < replayed.size(); ++i) result.checks[i + 1].replayed = replayed[i];
  return result;
}

/// Of the first digest that differs.
std::string difference(const ReplaySource& source, const Verification& result) {
  const Check& c = *std::ranges::find_if_not(result.checks, &Check::equal);
  if (c.record == 0)
    return fmt::format(
        "{}: its weights have digest {:016x}, and {} began with those of digest {:016x}: it is another "
        "base model",
        source.describe_model(), c.replayed, source.file.string(), c.stored);
  return fmt::format(
      "{}: {}: theta after step {} has digest {:016x} there, and {:016x} by replay: that digest, "
      "or a record before it, was changed",
      source.file.string(), c.place(), c.step, c.stored, c.replayed);
}

Json verification_object(const ReplaySource& source, const Verification& result) {
  Json checks = Json::array();
  for (const Check& c : result.checks)
    checks.push_back({{"record", c.record},
                      {"step", c.step},
                      {"stored", fmt::format("{:016x}", c.stored)},
                      {"replayed", fmt::format("{:016x}", c.replayed)},
                      {"equal", c.equal()}});
  return {{"trajectory", source.file.string()},
          {"model", source.describe_model()},
          {"steps", source.found.steps.size()},
          {"torn", source.found.torn},
          {"equal", result.equal()},
          {"digests", checks},
          {"most_steps_between", result.most_between},
          {"steps_after_last", result.after_last},
          {"replay_seconds", result.seconds},
          {"peak_host_bytes", peak_resident_bytes()}};
}

void print_verification(const ReplaySource& source, const Verification& result) {
  const auto steps_text = [](std::size_t n) { return fmt::format("{} step{}", n, n == 1 ? "" : "s"); };
  fmt::print("trajectory {}: {}{}\nmodel      {}\n", source.file.string(), steps_text(source.found.steps.size()),
             source.found.torn ? ", and what is not whole after them" : "", source.describe_model());
  for (const Check& c : result.checks)
    fmt::print("step {:>9}  {:<14} {:016x}  {}\n", c.step, c.place(), c.stored,
               c.equal() ? "as replayed" : fmt::format("replayed: {:016x}", c.replayed));
  if (!result.equal()) return;
  fmt::print("verified   {} digest{}, at most {} apart{}\n", result.checks.size(), result.checks.size() == 1 ? "" : "s",
             steps_text(result.most_between),
             result.after_last == 0 ? "" : fmt::format(", and {} after the last", steps_text(result.after_last)));
}

}  // namespace

ExitCode verify_command(const VerifyOptions& options) {
  const ReplaySource source = find_replay(options.trajectory, options.model);
  const Verification result = verify(source, !options.json);
  if (options.json)
    fmt::print("{}\n", json_text(verification_object(source, result)));
  else
    print_verification(source, result);
  if (!result.equal()) throw Error(ExitCode::mismatch, difference(source, result));
  return ExitCode::done;
}

}  // namespace distzo2
