// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// From construction on, SIGINT, SIGTERM and SIGUSR1 ask for a stop at the next step boundary; a second SIGINT or
/// SIGTERM ends the process at once, the trajectory being whole at every moment.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  int received() const;  // the signal's number, 0 where none came
};

}  // namespace distzo2
