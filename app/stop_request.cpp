// SPDX-License-Identifier: BSD-3-Clause
#include "app/stop_request.hpp"

#include "app/progress.hpp"
#include "parallel/communicator.hpp"

namespace distzo2 {
namespace {

enum Flags : std::uint32_t { signal_flag = 1, time_limit_flag = 2 };

}  // namespace

std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint) {
  if (signals.received() != 0) return StopReason::signal;
  if (checkpoint.time_limit_s && seconds_since_process_start() >= *checkpoint.time_limit_s)
    return StopReason::time_limit;
  return std::nullopt;
}

std::uint32_t stop_flags(std::optional<StopReason> reason) {
  return !reason ? 0U : *reason == StopReason::signal ? signal_flag : time_limit_flag;
}

std::optional<StopReason> stop_reason(std::uint32_t flags) {
  if ((flags & signal_flag) != 0) return StopReason::signal;
  if ((flags & time_limit_flag) != 0) return StopReason::time_limit;
  return std::nullopt;
}

std::optional<StopReason> agreed_stop(Communicator& world, std::optional<StopReason> mine) {
  std::uint64_t flags = 0;
  for (const std::uint64_t f : world.gather(std::uint64_t{stop_flags(mine)})) flags |= f;
  return stop_reason(static_cast<std::uint32_t>(flags));
}

}  // namespace distzo2
