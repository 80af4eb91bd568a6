// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/memory_budget.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace distzo2 {

/// What a plan is of.
struct PlannedRun {
  const RunConfig& config;
  const ModelConfig& model;
  const TensorTable& table;
  const LoadedData& data;
};

/// For people: tiers, terms with the limit that bound, what moves in a step and in the run, room on the disk.
std::vector<std::string> plan_lines(const PlannedRun& run, const MemoryPlan& plan);

/// In one line what the parameters take, and what all does, of what there is.
std::string memory_line(const MemoryPlan& plan);

/// A line where the deck's host budget is more than this machine has for it, and one for each key that the deck gives
/// for what streams where this plan streams nothing.
std::vector<std::string> notes_of_memory(const RunConfig& config, const MemoryPlan& plan);

/// Throws Error (file), as the run would, where the store does not fit the disk that it will lie on.
void check_scratch(const PlannedRun& run, const MemoryPlan& plan);

/// The same as plan_lines for programs; bytes are whole numbers.
nlohmann::ordered_json plan_object(const PlannedRun& run, const MemoryPlan& plan);

}  // namespace distzo2
