// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "core/engine.hpp"
#include "core/lane_trace.hpp"
#include "io/trace_file.hpp"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace distzo2 {

/// What the lanes of a streamed model did: the timeline on request (`output/trace file`), and their use for the
/// summary.
class LaneLog {
public:
  LaneLog(const RunConfig& config, Engine& engine);
  void after_step();
  void close();
  /// Of the last half of the steps that this process did; none where nothing streams.
  std::optional<Utilisation> last_half() const;

private:
  UnitPipeline* pipeline_;  // null where nothing streams
  std::optional<TraceFile> trace_;
  std::vector<LaneSpan> spans_;
  std::vector<double> step_ends_;  // on the clock of the spans; the first is the start of the steps
};

/// Seconds and bytes of each lane, and their overlap; null for none.
nlohmann::ordered_json lanes_object(const std::optional<Utilisation>& use);

}  // namespace distzo2
