// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_status.hpp"

#include "app/run_config.hpp"
#include "app/run_lock.hpp"
#include "core/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using State = RunStatus::State;

/// Of the evaluations of one set, the first and the last. The test set has one at each end, so that a run that is not
/// at its end is told by its dev set.
void find_ends(RunStatus& status, const std::vector<RecordedEvaluation>& evaluations) {
  for (const char* set : {"test", "dev"}) {
    std::optional<RecordedEvaluation> first, last;
    for (const RecordedEvaluation& e : evaluations) {
      if (e.set != set) continue;
      if (!first || e.step < first->step) first = e;
      if (!last || e.step >= last->step) last = e;
    }
    const bool two = first && last->step > first->step;
    if (two || (first && !status.first)) status.first = first, status.last = last;
    if (two) return;
  }
}

const char* text_of(State state) {
  return state == State::finished ? "finished" : state == State::stopped ? "stopped" : "running";
}

Json evaluation_object(const std::optional<RecordedEvaluation>& e) {
  if (!e) return nullptr;
  return {{"step", e->step}, {"set", e->set}, {"accuracy", e->result.accuracy}, {"loss", e->result.loss}};
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

}  // namespace

RunStatus read_run_status(const RunFolder& folder, const Trajectory& trajectory) {
  RunStatus status;
  status.steps_done = static_cast<std::uint32_t>(trajectory.steps.size());

  // 1. What the run is to do, of the deck that it keeps; what its deck names may be gone.
  try {
    const RunConfig config = read_run_config(folder.deck());
    status.steps = config.zo.steps;
    status.model = config.model.random() ? config.model.shape + ", random weights" : config.model.folder.string();
  } catch (const Error&) {
  }

  // 2. What it came to.
  const std::vector<RecordedEvaluation> evaluations = recorded_evaluations(folder.metrics());
  find_ends(status, evaluations);
  status.best = best_on_dev(evaluations);

  // 3. Whether it is at its end.
  const FoundSummary summary = find_summary(folder, status.steps_done);
  status.summary_problem = summary.problem;
  if (summary.is_end()) {
    status.commit = summary.commit;
    status.ended = summary.ended;
    status.state = State::finished;
  }
  if (is_worked_on(folder)) status.state = State::running;
  return status;
}

std::vector<std::string> status_lines(const RunStatus& s) {
  const std::string of = s.steps ? fmt::format(" of {}", *s.steps) : "";
  std::vector<std::string> lines{fmt::format("status     {} after step {}{}", text_of(s.state), s.steps_done, of)};
  if (!s.model.empty()) lines.push_back("model      " + s.model);
  if (s.first)
    lines.push_back(fmt::format("accuracy   {:.4f} -> {:.4f} on {}, step {} -> {}", s.first->result.accuracy,
                                s.last->result.accuracy, s.first->set, s.first->step, s.last->step));
  if (s.best)
    lines.push_back(fmt::format("best       step {} on dev: accuracy {:.4f}, loss {:.4f}", s.best->step,
                                s.best->result.accuracy, s.best->result.loss));
  if (!s.ended.empty()) lines.push_back("ended      " + s.ended);
  if (!s.commit.empty()) lines.push_back("commit     " + s.commit);
  if (!s.summary_problem.empty()) lines.push_back("note       " + s.summary_problem);
  return lines;
}

nlohmann::ordered_json status_object(const RunStatus& s) {
  return {{"status", text_of(s.state)},
          {"steps_done", s.steps_done},
          {"steps_of_deck", s.steps ? Json(*s.steps) : Json()},
          {"model", text_or_null(s.model)},
          {"first", evaluation_object(s.first)},
          {"last", evaluation_object(s.last)},
          {"best", evaluation_object(s.best)},
          {"ended", text_or_null(s.ended)},
          {"commit", text_or_null(s.commit)},
          {"summary_problem", text_or_null(s.summary_problem)}};
}

}  // namespace distzo2
