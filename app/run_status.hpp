// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"
#include "io/trajectory_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

/// How far a run is and what it has come to, as its folder tells: for `inspect`.
struct RunStatus {
  enum class State : std::uint8_t { finished, stopped, running } state = State::stopped;
  std::uint32_t steps_done = 0;
  std::optional<std::uint32_t> steps;             // the deck's; none where the deck can no longer be read
  std::string model;                              // folder or shape, as the run's deck has it; empty as above
  std::optional<RecordedEvaluation> first, last;  // of the set that the summary reports, or the dev set until then
  std::optional<RecordedEvaluation> best;         // on the dev set
  std::string summary_problem;  // why summary.json is no end of the run; empty: there is none, or it is
  std::string commit, ended;    // empty until the run is finished: the summary names them
};

RunStatus read_run_status(const RunFolder& folder, const Trajectory& trajectory);

/// For people, a line each; and the same for programs.
std::vector<std::string> status_lines(const RunStatus& status);
nlohmann::ordered_json status_object(const RunStatus& status);

}  // namespace distzo2
