// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Called by main before any thread is made. SIGINT, SIGTERM, SIGUSR1 and SIGHUP wait from here on: threads inherit
/// that, so that only the main thread ever handles one. A write to a closed pipe or beyond the limit of file sizes
/// becomes an error like any other.
void prepare_signals();

/// The main thread takes stop signals, and what came since `prepare_signals`.
void admit_stop_signals();

/// From construction on, SIGINT, SIGTERM, SIGUSR1 and SIGHUP ask for a stop at the next step boundary; a second SIGINT
/// or SIGTERM ends the process at once, the trajectory being whole at every moment. What was ignored stays so: SIGHUP
/// under nohup, SIGINT in a script's background. Admits them.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int received() const;  // the signal's number, 0 where none came
};

}  // namespace distzo2
