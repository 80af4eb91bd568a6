// SPDX-License-Identifier: BSD-3-Clause
#include "app/plan_prediction.hpp"

#include "core/error.hpp"
#include "core/packing.hpp"
#include "core/step.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace distzo2 {
namespace {

using Json = nlohmann::ordered_json;

std::string rate_text(const CostTerm& t) {
  const bool bytes = std::string_view(t.unit) == "B";
  return fmt::format("{:.4g} G{} at {:.4g} G{}/s", t.amount * 1e-9, t.unit, t.rate * 1e-9, bytes ? "B" : t.unit);
}

std::string layout_text(const StepPrediction& p, const Layout& layout, const MachineRates& machine) {
  const auto many = [](int n, const char* one, const char* more) {
    return fmt::format("{} {}", n, n == 1 ? one : more);
  };
  return fmt::format("pertp {} x ddp {}: {} on {}{}", layout.pertp, layout.ddp,
                     machine.devices > 0 ? many(p.ranks, "device", "devices") : many(p.ranks, "rank", "ranks"),
                     many(p.nodes, "node", "nodes"),
                     p.slices ? ", each uploads its slice of every block and gathers the others over NVLink" : "");
}

}  // namespace

std::optional<Layout> parse_layout(std::string_view text) {
  const std::size_t x = text.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<int> {
    const std::optional<std::uint64_t> n = parse_unsigned(digits);
    if (!n || *n < 1 || *n > 1'000'000) return std::nullopt;
    return static_cast<int>(*n);
  };
  const std::optional<int> pertp = number(text.substr(0, x)), ddp = number(text.substr(x + 1));
  if (!pertp || !ddp) return std::nullopt;
  Layout layout;
  layout.pertp = *pertp;
  layout.ddp = *ddp;
  return layout;
}

PredictedRun predict_run(const RunConfig& config, const ModelConfig& model, const TensorTable& table,
                         const LoadedData& data, const MachineFile& machine, const std::filesystem::path& file,
                         const Layout& layout) {
  if (!data.train) throw Error(ExitCode::usage, "--machine: a prediction is of steps: the deck needs data/train");
  PredictedRun run;

  // 1. The step: lengths are means over the training examples.
  StepWork& work = run.work;
  work.model = model;
  work.storage = config.precision.storage;
  work.compute = config.precision.compute;
  work.difference = config.zo.difference;
  work.directions = static_cast<int>(config.zo.directions);
  const auto examples = static_cast<double>(data.train->examples.size());
  for (const Example& e : data.train->examples) {
    const PackedSize size = packed_size(e, candidates_of(data.objective));
    work.tokens_of_sequence += size.tokens / examples;
    work.terms_of_sequence += size.terms / examples;
  }
  work.layout = layout;
  work.layout.evaluations = evaluation_count(work.difference, work.directions);
  work.layout.batch = static_cast<int>(config.zo.batch);
  check_layout(work.layout, layout.pertp * layout.ddp);
  ranks_of_node(machine.rates, work.layout);

  // 2. Where a rank has its parameters: its share of the batch goes forward at once.
  RunConfig of_rank = config;
  of_rank.zo.batch = static_cast<std::uint32_t>(share(work.layout, 0).sequences.size());
  const MemoryLimit host =
      less_a_tenth({static_cast<std::uint64_t>(machine.rates.host_bytes), "auto: the machine's memory"});
  if (!config.memory.host_budget) of_rank.memory.host_budget = ByteCount{host.bytes};
  std::optional<std::uint64_t> device;
  if (machine.rates.devices > 0) device = static_cast<std::uint64_t>(machine.rates.device_bytes);
  run.plan = plan_run(of_rank, model, table, data, machine.rates.cores, machine_memory_sources(), device);
  if (!config.memory.host_budget) run.plan.host_source = host.source;
  if (!config.memory.device_budget && device) run.plan.device_source = "auto: the machine's device memory, less 1 GiB";

  // 3. Its time.
  if (const auto missing = missing_rates(run.plan, work, machine.rates); !missing.empty())
    throw Error(ExitCode::file, fmt::format("{}: this prediction needs {} as well, each {{\"value\": ..., \"source\": "
                                            "...}}",
                                            file.string(), machine_keys(missing)));
  run.step = predict_step(table, run.plan, work, machine.rates);
  return run;
}

std::vector<std::string> prediction_lines(const PredictedRun& run, const MachineFile& machine) {
  const StepPrediction& p = run.step;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("prediction, not a measurement, on {}", machine.name));
  lines.push_back("layout    " + layout_text(p, run.work.layout, machine.rates));
  lines.push_back(fmt::format("{:<16} {:>12}", "lane", "busy"));
  for (int i = 0; i < bound_count; ++i) {
    const auto bound = static_cast<Bound>(i);
    if (p.of(bound) <= 0) continue;
    const bool one = std::ranges::count(p.terms, bound, &CostTerm::lane) == 1;
    const auto first = std::ranges::find(p.terms, bound, &CostTerm::lane);
    lines.push_back(fmt::format("{:<16} {:>10.4g} s{}{}", name_of(bound), p.of(bound),
                                one ? "   " + rate_text(*first) : "", bound == p.longest ? "   (the longest)" : ""));
    for (const CostTerm& t : p.terms)
      if (t.lane == bound && !one)
        lines.push_back(fmt::format("  {:<14} {:>10.4g} s   {}", t.name, t.seconds, rate_text(t)));
  }
  lines.push_back(fmt::format("step      {:.4g} s (predicted): {} {:.4g} s, fill and drain {:.4g} s, exchange {:.4g} s",
                              p.step_s, name_of(p.longest), p.of(p.longest), p.fill_and_drain_s, p.exchange_s));
  lines.push_back(
      fmt::format("speed     {:.4g} tokens/s (predicted), {:.6g} tokens a step", p.tokens_per_s(), p.tokens));
  int assumed = 0;
  for (const auto& [key, source] : machine.sources) assumed += source.starts_with("measured") ? 0 : 1;
  if (assumed > 0)
    lines.push_back(
        fmt::format("note      {} of the machine's {} numbers are from data sheets or assumed, not measured", assumed,
                    machine.sources.size()));
  return lines;
}

nlohmann::ordered_json prediction_object(const PredictedRun& run, const MachineFile& machine) {
  const StepPrediction& p = run.step;
  Json lanes = Json::object(), terms = Json::array();
  for (int i = 0; i < bound_count; ++i)
    if (const auto bound = static_cast<Bound>(i); p.of(bound) > 0) lanes[name_of(bound)] = p.of(bound);
  for (const CostTerm& t : p.terms)
    terms.push_back({{"lane", name_of(t.lane)},
                     {"name", t.name},
                     {"amount", t.amount},
                     {"unit", t.unit},
                     {"rate", t.rate},
                     {"seconds", t.seconds}});
  return {{"prediction", true},
          {"pertp", run.work.layout.pertp},
          {"ddp", run.work.layout.ddp},
          {"ranks", p.ranks},
          {"nodes", p.nodes},
          {"slices", p.slices},
          {"lanes_s", lanes},
          {"terms", terms},
          {"longest", name_of(p.longest)},
          {"fill_and_drain_s", p.fill_and_drain_s},
          {"exchange_s", p.exchange_s},
          {"step_s", p.step_s},
          {"tokens_per_step", p.tokens},
          {"tokens_per_second", p.tokens_per_s()},
          {"machine", Json::parse(machine_text(machine))}};
}

}  // namespace distzo2
