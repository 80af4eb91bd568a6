// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"
#include "app/run_config.hpp"
#include "core/memory_plan.hpp"
#include "parallel/job.hpp"
#include "parallel/shared_window.hpp"

#include <memory>
#include <string>

namespace distzo2 {

/// Where everything of this rank will be, and the memory in which the ranks of its node keep one copy of the
/// parameters: null where each has its own.
struct NodePlan {
  MemoryPlan plan;
  std::unique_ptr<SharedWindow> window;
  Communicator sharers;  // of the ranks that keep it; this one alone otherwise
  int store_rank = 0;    // in the world: the rank that has what is on disk, of the node or of this rank alone
  std::string line;      // says which; empty where one rank is alone on its node
};

/// By all ranks. Parameters are shared where several ranks of a node compute on the host, the deck leaves it open, and
/// all of these ranks read the same files: then no rank can have another model.
NodePlan plan_on_node(Job& job, const RunConfig& config, const ModelConfig& model, const LoadedData& data);

}  // namespace distzo2
