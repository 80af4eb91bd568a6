// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/build_info.hpp"
#include "app/machine.hpp"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace distzo2 {

/// Keeps what a long test measured, with the load of the machine, in full_results.json of the current folder (under
/// ctest build/<preset>/tests), beside what others measured. Long tests run one at a time.
inline void record_result(const std::string& name, nlohmann::ordered_json measured) {
  nlohmann::ordered_json all;
  if (std::ifstream in("full_results.json"); in) all = nlohmann::ordered_json::parse(in, nullptr, false);
  if (!all.is_object()) all = nlohmann::ordered_json::object();
  double load = 0;
  if (::getloadavg(&load, 1) == 1) measured["load_average"] = load;
  measured["git_hash"] = build_git_hash();
  measured["machine"] = machine_object();
  all[name] = std::move(measured);
  std::ofstream("full_results.json") << all.dump(2) << "\n";
}

/// X of the line "first step after X s" that `train` prints; throws where there is none.
inline double first_step_s(const std::string& out) {
  const std::string line = "first step after ";
  const std::size_t at = out.find(line);
  return std::stod(at == std::string::npos ? "" : out.substr(at + line.size()));
}

}  // namespace distzo2
