// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "app/signals.hpp"

#include <cstdint>
#include <optional>

namespace distzo2 {

/// How a run's steps end.
enum class StopReason : std::uint8_t { finished, signal, time_limit };

/// Why the run is to stop now, where it is: a signal came, or `checkpoint/time limit` is over since the process
/// started. Once there is a reason, there is one for good.
std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint);

}  // namespace distzo2
