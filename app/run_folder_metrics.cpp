// SPDX-License-Identifier: BSD-3-Clause
// metrics.jsonl, written and read.
#include "app/run_folder.hpp"

#include "core/error.hpp"
#include "core/step.hpp"
#include "io/output_file.hpp"
#include "io/regular_file.hpp"
#include "parallel/exchange.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <limits>
#include <set>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json step_object(const StepRecord& r, double loss) {
  Json line{{"step", r.t}, {"loss", loss}, {"g", r.g}, {"lr", r.lr}};
  if (r.g != r.g_raw) line["g_raw"] = r.g_raw;
  return line;
}

/// To be read; not open where there is none.
std::ifstream open_metrics(const fs::path& metrics) {
  std::error_code none;
  if (fs::exists(metrics, none)) expect_regular_file(metrics);
  return std::ifstream(metrics);
}

}  // namespace

MetricsFile::MetricsFile(const fs::path& path, const std::vector<StepRecord>& recorded) : path_(path) {
  const auto next_step = static_cast<std::uint32_t>(recorded.size());
  std::string kept;
  std::set<std::uint32_t> seen;
  if (std::ifstream in = open_metrics(path); in) {
    for (std::string text; std::getline(in, text);) {
      const Json line = Json::parse(text, nullptr, false);
      if (!line.is_object() || !line.contains("step") || !line["step"].is_number_unsigned()) continue;
      const auto step = line["step"].get<std::uint64_t>();
      const bool evaluation = line.contains("evaluation");
      if (step > next_step || (!evaluation && step == next_step)) continue;
      if (!evaluation) seen.insert(static_cast<std::uint32_t>(step));
      kept += text + "\n";
    }
  }
  for (const StepRecord& r : recorded)
    if (!seen.contains(r.t)) kept += step_object(r, reported_loss(r)).dump() + "\n";
  replace_text_file(path, kept);
  out_.open(path, std::ios::app);
  if (!out_) throw Error(ExitCode::file, fmt::format("{}: cannot be opened for writing", path.string()));
}

void MetricsFile::line(const std::string& text) {
  if (path_.empty()) return;
  out_ << text << '\n' << std::flush;
  if (!out_) throw Error(ExitCode::file, fmt::format("{}: writing failed (is the disk full?)", path_.string()));
}

void MetricsFile::step(const StepRecord& r, double loss, std::uint64_t tokens, double seconds,
                       const ExchangeCost* exchange) {
  Json object = step_object(r, loss);
  object["tokens"] = tokens;
  object["seconds"] = seconds;
  if (exchange != nullptr)
    object["exchange"] = {
        {"bytes", exchange->bytes}, {"seconds", exchange->seconds}, {"waiting_seconds", exchange->waiting_s}};
  line(object.dump());
}

void MetricsFile::evaluation(const RecordedEvaluation& evaluation) {
  const EvaluationResult& r = evaluation.result;
  Json object{{"set", evaluation.set},
              {"accuracy", r.accuracy},
              {"loss", r.loss},
              {"examples", r.examples},
              {"confusion", r.confusion}};
  Json whole{{"step", evaluation.step}, {"evaluation", object}};
  if (evaluation.data_digest) whole["data_digest"] = fmt::format("{:016x}", *evaluation.data_digest);
  if (evaluation.in_folder_best) whole["in_folder_best"] = *evaluation.in_folder_best;
  if (!evaluation.best_problem.empty()) whole["best_problem"] = evaluation.best_problem;
  line(whole.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<RecordedStep> recorded_steps(const fs::path& metrics) {
  std::vector<RecordedStep> found;
  std::ifstream in = open_metrics(metrics);
  for (std::string text; std::getline(in, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || line.contains("evaluation")) continue;
    const Json tokens = line.value("tokens", Json()), seconds = line.value("seconds", Json());
    if (tokens.is_number() && seconds.is_number() && seconds.get<double>() > 0)
      found.push_back({tokens.get<double>(), seconds.get<double>()});
  }
  return found;
}

std::vector<RecordedEvaluation> recorded_evaluations(const fs::path& metrics) {
  // A value that is not finite is null in JSON.
  const auto number = [](const Json& j) {
    return j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>();
  };
  const auto digest_of = [](const Json& line) -> std::optional<std::uint64_t> {
    if (!line.contains("data_digest")) return std::nullopt;
    const auto text = line.at("data_digest").get<std::string>();
    std::uint64_t digest = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(digest) : std::nullopt;
  };
  std::vector<RecordedEvaluation> found;
  std::ifstream in = open_metrics(metrics);
  for (std::string text; std::getline(in, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("evaluation")) continue;
    try {
      const Json& e = line.at("evaluation");
      found.push_back(
          {line.at("step").get<std::uint32_t>(),
           e.at("set").get<std::string>(),
           {number(e.at("accuracy")), number(e.at("loss")), e.at("examples").get<std::uint64_t>(),
            e.at("confusion").get<std::vector<std::uint64_t>>()},
           digest_of(line),
           line.contains("in_folder_best") ? std::optional(line.at("in_folder_best").get<bool>()) : std::nullopt,
           line.value("best_problem", "")});
    } catch (const nlohmann::json::exception&) {
      continue;  // a line that somebody changed: it is evaluated again
    }
  }
  return found;
}

bool is_better(const EvaluationResult& a, const EvaluationResult& b) {
  return a.accuracy > b.accuracy || (a.accuracy == b.accuracy && a.loss < b.loss);
}

std::optional<RecordedEvaluation> best_on_dev(const std::vector<RecordedEvaluation>& evaluations) {
  std::optional<RecordedEvaluation> best;
  for (const RecordedEvaluation& e : evaluations)
    if (e.set == "dev" && (!best || is_better(e.result, best->result))) best = e;
  return best;
}

}  // namespace distzo2
