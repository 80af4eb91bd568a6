// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_folder.hpp"

#include "core/error.hpp"
#include "core/step.hpp"
#include "io/output_file.hpp"
#include "parallel/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json step_object(const StepRecord& r, double loss) {
  Json line{{"step", r.t}, {"loss", loss}, {"g", r.g}, {"lr", r.lr}};
  if (r.g != r.g_raw) line["g_raw"] = r.g_raw;
  return line;
}

/// A larger one is no number that was counted up to.
constexpr int last_run_number = 999'999'999;

/// The number of runs/<deck>-<NNN>, or -1 for any other name.
int run_number(const std::string& name, const std::string& prefix) {
  int number = -1;
  if (name.size() < prefix.size() + 3 || !name.starts_with(prefix)) return -1;
  const char* end = name.data() + name.size();
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, number);
  return error == std::errc() && last == end && number <= last_run_number ? number : -1;
}

int newest_number(const fs::path& runs, const std::string& prefix) {
  int newest = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(runs, error))
    newest = std::max(newest, run_number(entry.path().filename().string(), prefix));
  return newest;
}

std::string run_prefix(const fs::path& deck) {
  return deck.stem().string() + "-";
}

/// A lock on all of a file. It is the opened file's (OFD), not the process's: closing another one lets go of nothing.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool holds_run(const fs::path& folder) {
  return fs::exists(folder / "trajectory.zoj") || fs::exists(folder / "summary.json") ||
         fs::exists(folder / "deck.yaml");
}

}  // namespace

void check_no_run(const RunConfig& config) {
  const fs::path& folder = config.output.folder;
  if (!folder.empty() && holds_run(folder))
    throw Error(
        ExitCode::usage,
        fmt::format("output/folder: {} holds a run already; give --resume auto to go on with it, or another folder",
                    folder.string()));
}

RunFolder new_run_folder(const RunConfig& config, const fs::path& deck) {
  std::error_code error;
  if (!config.output.folder.empty()) {
    const fs::path& folder = config.output.folder;
    check_no_run(config);
    fs::create_directories(folder, error);
    if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
    return {folder};
  }
  const fs::path runs = fs::current_path() / "runs";
  fs::create_directories(runs, error);
  if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", runs.string(), error.message()));
  for (int number = newest_number(runs, run_prefix(deck)) + 1;; ++number) {
    const fs::path folder = runs / fmt::format("{}{:03}", run_prefix(deck), number);
    if (fs::create_directory(folder, error)) return {folder};  // false where another run just took this number
    if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  }
}

std::optional<RunFolder> run_of_deck(const fs::path& deck) {
  const RunFolder folder{fs::absolute(deck).lexically_normal().parent_path()};
  if (deck.filename() != folder.deck().filename() || !fs::exists(folder.trajectory())) return std::nullopt;
  return folder;
}

std::optional<RunFolder> existing_run_folder(const RunConfig& config, const fs::path& deck) {
  if (!config.output.folder.empty())
    return fs::exists(config.output.folder) ? std::optional(RunFolder{config.output.folder}) : std::nullopt;
  const fs::path runs = fs::current_path() / "runs";
  const int number = newest_number(runs, run_prefix(deck));
  if (number == 0) return std::nullopt;
  return RunFolder{runs / fmt::format("{}{:03}", run_prefix(deck), number)};
}

bool ended_well(const RunFolder& folder, std::optional<std::uint64_t> steps_done) {
  std::error_code error;
  if (!fs::is_regular_file(folder.summary(), error)) return false;
  std::ifstream in(folder.summary());
  const Json summary = Json::parse(in, nullptr, false);
  return summary.is_object() && (!steps_done || summary.value("steps", Json()) == Json(*steps_done));
}

bool is_worked_on(const RunFolder& folder) {
  const int fd = ::open(folder.lock().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock lock = whole_file();
  const bool locked = ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(fd);
  return locked;
}

void remove_leftovers(const RunFolder& folder) {
  std::error_code error;  // what cannot be seen or removed is in nobody's way
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path, error))
    for (const fs::path& target : {folder.deck(), folder.metrics(), folder.trajectory(), folder.summary(),
                                   folder.final_model(), folder.best_model()})
      if (is_made_beside(target, entry.path().filename().string())) fs::remove_all(entry.path(), error);
}

RunLock::RunLock(const RunFolder& folder) : fd_(::open(folder.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  struct flock lock = whole_file();
  if (fd_ >= 0 && ::fcntl(fd_, F_OFD_SETLK, &lock) == 0) return;
  const int error = errno;
  const bool locked = fd_ >= 0 && (error == EAGAIN || error == EACCES);  // as a file system says it
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (locked) throw Error(ExitCode::usage, fmt::format("{}: another process works on this run", folder.path.string()));
  problem_ = fmt::format("{}: cannot be locked ({}): take care that no other process works on this run",
                         folder.path.string(), std::generic_category().message(error));
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

MetricsFile::MetricsFile(const fs::path& path, const std::vector<StepRecord>& recorded) : path_(path) {
  const auto next_step = static_cast<std::uint32_t>(recorded.size());
  std::string kept;
  std::set<std::uint32_t> seen;
  if (std::ifstream in(path); in) {
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
  std::ifstream in(metrics);
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
  std::ifstream in(metrics);
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
