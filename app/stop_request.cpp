// SPDX-License-Identifier: BSD-3-Clause
#include "app/stop_request.hpp"

#include "app/progress.hpp"

namespace distzo2 {

std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint) {
  if (signals.received() != 0) return StopReason::signal;
  if (checkpoint.time_limit_s && seconds_since_process_start() >= *checkpoint.time_limit_s)
    return StopReason::time_limit;
  return std::nullopt;
}

}  // namespace distzo2
