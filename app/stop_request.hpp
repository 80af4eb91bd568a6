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
/// started, or the batch system's, whose job ends with it. It is over by `reserve_s` earlier, but for a quarter of it
/// at most: what a checkpoint takes. Once there is a reason, there is one for good.
std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint,
                                       double reserve_s = 0.0);

/// Seconds until this process is to have ended, as far as anybody says: by its time limits, and after a SIGTERM by what
/// batch systems leave to one. Infinity: nobody does.
double seconds_to_end(const StopSignals& signals, const CheckpointSection& checkpoint);

/// In the word of a step: a checkpoint is due by the clock of a rank.
constexpr std::uint32_t checkpoint_due_flag = 4;

/// As a word whose bits ranks can join, and back: a signal to one rank, or its time limit, stops all.
std::uint32_t stop_flags(std::optional<StopReason> reason);
std::optional<StopReason> stop_reason(std::uint32_t flags);
/// The reason of any rank, the same on all. By all ranks.
std::optional<StopReason> agreed_stop(Communicator& world, std::optional<StopReason> mine);

}  // namespace distzo2
