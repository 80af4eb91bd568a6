// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_config.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace distzo2 {

/// What the run says of itself on stdout: on a terminal one live line, in a batch log a line every so often. By one
/// thread, but for `end`.
class Progress {
public:
  /// `speaks`: false on ranks other than 0, which say nothing.
  Progress(Interval log_every, std::uint32_t steps, bool speaks = true);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A line that stays.
  void say(const std::string& text);
  /// What is being done now: on a terminal until the next line, in a log every ten seconds.
  void working(const std::string& text);
  /// State after a step, `left_s` before the run's end: shown at once on a terminal, logged when due.
  void step(std::uint32_t step, double loss, double g, std::uint64_t tokens, double seconds, double left_s);
  /// By any thread, before another line is printed that is the last one: wipes the live line, and nothing follows. It
  /// waits for nobody who does not read.
  void end();

private:
  void print(const std::string& text, bool live);  // in the live line's place: one that stays, or the next

  std::timed_mutex printing_;  // of `ended_` and `live_`
  bool ended_ = false;
  bool speaks_;
  bool terminal_;
  bool live_ = false;  // a live line stands unfinished on the terminal
  Interval log_every_;
  std::uint32_t steps_;
  double tokens_per_second_ = 0.0, loss_ = 0.0;  // smoothed
  std::uint32_t steps_seen_ = 0;
  std::chrono::steady_clock::time_point last_log_, last_draw_;
  std::chrono::steady_clock::time_point last_working_ = std::chrono::steady_clock::now();
};

/// Told now and then what is being done, and how far it is: bytes done, and in all. What it throws ends that.
using ByteProgress = std::function<void(const char* what, std::uint64_t done, std::uint64_t total)>;

/// Works at "importing the model: 1.0 GiB of 2.0 GiB"; null: at nothing.
ByteProgress shown_by(Progress* progress);

/// Wall time since the operating system started this process.
double seconds_since_process_start();

/// "1 h 02 min", "3 min 20 s", "12 s".
std::string short_duration(double seconds);

/// VmRSS and VmHWM of this process.
std::uint64_t resident_bytes();
std::uint64_t peak_resident_bytes();

}  // namespace distzo2
