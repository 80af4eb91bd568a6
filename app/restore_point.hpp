// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/open_run.hpp"
#include "app/placed_model.hpp"
#include "app/progress.hpp"
#include "app/run_checkpoints.hpp"
#include "app/run_config.hpp"
#include "core/memory_plan.hpp"
#include "parallel/job.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

/// What a resumed run begins with: its newest good checkpoint, or the base model; the records beyond it are replayed.
class RestorePoint {
public:
  /// Looks for the checkpoints of the run that was found and says what it will begin with, and what the replay costs.
  /// By all ranks.
  RestorePoint(Job& job, const OpenRun& run, const MemoryPlan& plan, const RunConfig& config, Progress& progress);

  /// For PlacedModel; null where there is no checkpoint. `sharers`: the ranks that have one copy of the parameters.
  PlacedModel::Restore restore(Communicator& sharers, ByteProgress progress);
  /// Once that was done, notes of what was not whole.
  std::vector<std::string> problems() const;
  /// "from the checkpoint of step 80 and by replay of 20 records"
  std::string how(std::size_t steps) const;
  /// 0: there is no checkpoint.
  std::uint32_t newest_step() const;

private:
  UsableCheckpoints usable_;
  Restored restored_;
};

}  // namespace distzo2
