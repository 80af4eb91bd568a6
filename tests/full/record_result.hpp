// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/build_info.hpp"
#include "app/machine.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace distzo2 {

inline double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : -1;
}

/// Keeps what a long test measured, with the load of the machine, in full_results.json of the current folder (under
/// ctest build/<preset>/tests), beside what others measured. Long tests run one at a time.
inline void record_result(const std::string& name, nlohmann::ordered_json measured) {
  nlohmann::ordered_json all;
  if (std::ifstream in("full_results.json"); in) all = nlohmann::ordered_json::parse(in, nullptr, false);
  if (!all.is_object()) all = nlohmann::ordered_json::object();
  measured["load_average"] = load_average();
  measured["git_hash"] = build_git_hash();
  measured["machine"] = machine_object();
  all[name] = std::move(measured);
  std::ofstream("full_results.json") << all.dump(2) << "\n";
}

/// A time for which the requirement is a bound: it is kept with its bound, as X_s and X_bound_s, and must not exceed
/// it.
inline void expect_within(nlohmann::ordered_json& measured, const std::string& what, double seconds, double bound) {
  measured[what + "_s"] = seconds;
  measured[what + "_bound_s"] = bound;
  EXPECT_LE(seconds, bound) << what << ", at a load of " << load_average()
                            << ": other programs on this machine count in it";
}

/// X of the line "first step after X s" that `train` prints; throws where there is none.
inline double first_step_s(const std::string& out) {
  const std::string line = "first step after ";
  const std::size_t at = out.find(line);
  return std::stod(at == std::string::npos ? "" : out.substr(at + line.size()));
}

}  // namespace distzo2
