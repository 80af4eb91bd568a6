// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"
#include "app/signals.hpp"

#include <cstdint>
#include <optional>

namespace distzo2 {

class Communicator;  // parallel/communicator.hpp

/// How a run's steps end.
enum class StopReason : std::uint8_t { finished, signal, time_limit };

/// Why the run is to stop now, where it is: a signal came, or `checkpoint/time limit` is over since the process
/// started. Once there is a reason, there is one for good.
std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint);

/// As a word whose bits ranks can join, and back: a signal to one rank, or its time limit, stops all.
std::uint32_t stop_flags(std::optional<StopReason> reason);
std::optional<StopReason> stop_reason(std::uint32_t flags);
/// The reason of any rank, the same on all. By all ranks.
std::optional<StopReason> agreed_stop(Communicator& world, std::optional<StopReason> mine);

}  // namespace distzo2
