// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>

namespace distzo2 {

/// They ask for a stop. The program starts with them blocked (first_signals.cpp): threads inherit that, so that only
/// the main thread ever handles one.
inline constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};

/// A write to a closed pipe or beyond the limit of file sizes becomes an error like any other. Called by main.
void prepare_signals();

/// The main thread takes stop signals, and what came since the program's start.
void admit_stop_signals();

/// From construction on, they ask for a stop at the next step boundary, or of the loading before the first; a second
/// SIGINT or SIGTERM ends the process at once, the trajectory being whole at every moment. What was ignored stays so:
/// SIGHUP under nohup, SIGINT in a script's background. Admits them.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int received() const;          // the signal's number, 0 where none came
  double seconds_since() const;  // it was received; of one that came
};

}  // namespace distzo2
