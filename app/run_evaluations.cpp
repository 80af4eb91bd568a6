// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_evaluations.hpp"

#include "app/model_export.hpp"
#include "app/step_losses.hpp"

#include <fmt/format.h>

namespace distzo2 {
namespace {

/// Base model and trajectory give any theta_t again, so larger models are written only where the deck asks.
constexpr double automatic_model_bytes = 10e9;

bool better(const EvaluationResult& a, const EvaluationResult& b) {
  return a.accuracy > b.accuracy || (a.accuracy == b.accuracy && a.loss < b.loss);
}

}  // namespace

bool writes_models(const RunConfig& config, const ParameterStore& store) {
  switch (config.output.write_models) {
    case WriteModels::always:
      return true;
    case WriteModels::never:
      return false;
    case WriteModels::automatic:
      return static_cast<double>(store.bytes()) < automatic_model_bytes;
  }
  return false;
}

RunEvaluations::RunEvaluations(const RunConfig& config, const LoadedData& data, const RunFolder& folder, Engine& engine,
                               MetricsFile& metrics, Progress& progress, const StopSignals& signals)
    : config_(config),
      data_(data),
      folder_(folder),
      engine_(engine),
      metrics_(metrics),
      progress_(progress),
      signals_(signals),
      interval_(evaluation_interval(config)),
      recorded_(recorded_evaluations(folder.metrics())) {
  for (const RecordedEvaluation& r : recorded_)
    if (r.set == "dev" && (!best_ || better(r.result, *best_))) best_ = r.result;
}

void RunEvaluations::at(std::uint32_t t, bool end) {
  const bool ends = t == 0 || end;
  if (data_.dev && (ends || (interval_ != 0 && t % interval_ == 0))) {
    const std::optional<EvaluationResult> result = evaluated(t, "dev", *data_.dev);
    if (result && (!best_ || better(*result, *best_))) {
      best_ = result;
      if (t > 0 && writes_models(config_, engine_.store()))
        export_model(engine_, config_.model.folder, folder_.best_model(), IfExists::replace);
    }
  }
  if (data_.test && ends) evaluated(t, "test", *data_.test);
}

std::optional<EvaluationResult> RunEvaluations::reported(std::uint32_t t) const {
  const std::string wanted = data_.test ? "test" : "dev";
  for (const RecordedEvaluation& r : recorded_)
    if (r.step == t && r.set == wanted) return r.result;
  return std::nullopt;
}

std::optional<EvaluationResult> RunEvaluations::evaluated(std::uint32_t t, const std::string& set,
                                                          const ExampleSet& examples) {
  for (const RecordedEvaluation& r : recorded_)
    if (r.step == t && r.set == set) return r.result;
  const auto go_on = [&](std::size_t done) {
    progress_.working(fmt::format("evaluating {}: {}/{}", set, done, examples.examples.size()));
    return signals_.received() == 0;
  };
  const std::optional<EvaluationResult> result = evaluate(engine_, examples.examples, data_.objective, go_on);
  if (!result) return std::nullopt;
  metrics_.evaluation(t, set, *result);
  recorded_.push_back({t, set, *result});
  progress_.say(fmt::format("step {} on {}: accuracy {:.4f}, loss {:.4f}, {} examples", t, set, result->accuracy,
                            result->loss, result->examples));
  return result;
}

}  // namespace distzo2
