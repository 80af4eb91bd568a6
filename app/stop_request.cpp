// SPDX-License-Identifier: BSD-3-Clause
#include "app/stop_request.hpp"

#include "app/progress.hpp"
#include "io/units.hpp"
#include "parallel/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>

namespace distzo2 {
namespace {

enum Flags : std::uint32_t { signal_flag = 1, time_limit_flag = 2 };  // and checkpoint_due_flag

/// Of a batch system's wall-clock limit, left for the end of the process and of its script.
constexpr double batch_margin_s = 20;
/// From SIGTERM to SIGKILL: Slurm's KillWait, unless a cluster sets another one.
constexpr double sigterm_grace_s = 30;

/// Until the job ends, where Slurm says it.
std::optional<double> batch_seconds_left() {
  static const char* const text = std::getenv("SLURM_JOB_END_TIME");  // of Unix time
  const std::optional<std::uint64_t> end = text != nullptr ? parse_unsigned(text) : std::nullopt;
  if (!end) return std::nullopt;
  using Seconds = std::chrono::duration<double>;
  return static_cast<double>(*end) - Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<StopReason> stop_request(const StopSignals& signals, const CheckpointSection& checkpoint,
                                       double reserve_s) {
  if (signals.received() != 0) return StopReason::signal;
  const double now = seconds_since_process_start();
  const auto over = [&](double limit_s) { return now >= limit_s - std::min(reserve_s, limit_s / 4); };
  if (checkpoint.time_limit_s && over(*checkpoint.time_limit_s)) return StopReason::time_limit;
  if (const std::optional<double> left = batch_seconds_left(); left && over(now + *left - batch_margin_s))
    return StopReason::time_limit;
  return std::nullopt;
}

double seconds_to_end(const StopSignals& signals, const CheckpointSection& checkpoint) {
  double left = std::numeric_limits<double>::infinity();
  if (checkpoint.time_limit_s) left = *checkpoint.time_limit_s - seconds_since_process_start();
  if (const std::optional<double> batch = batch_seconds_left()) left = std::min(left, *batch);
  if (signals.received() == SIGTERM) left = std::min(left, sigterm_grace_s - signals.seconds_since());
  return left;
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
