// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parallel/communicator.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace distzo2 {

/// How often ranks give a sign of life, and when one that does not is given up. All are counts of this rank's own
/// beats, not of a clock: a job that is suspended as a whole and continued goes on.
struct HeartbeatPace {
  int tick_ms = 100;        // messages are looked at
  int ticks_of_beat = 5;    // a sign of life is sent
  int missed_beats = 8;     // of a neighbour that is dead or stopped: 4 s
  int ticks_to_agree = 10;  // other ranks that fail as well may say so
};

/// Ends all ranks of a job together. A thread sends signs of life to the next rank and watches those of the one before;
/// a rank that fails tells rank 0, which says so once and ends the job. Where all ranks fail alike, each returns from
/// `fail` and ends by itself.
class Heartbeat : public WaitObserver {
public:
  /// By all ranks of `comm`, whose messages are the heartbeat's alone. `hosts` of all ranks; `say` prints a message;
  /// `end` ends the job with an exit code and does not return (abort_job).
  Heartbeat(Communicator comm, std::vector<std::string> hosts, std::function<void(const std::string&)> say,
            std::function<void(int)> end, const HeartbeatPace& pace = {});
  ~Heartbeat() override;  // by all ranks, each when it is done: from then on it is not missed

  /// How long ranks wait for one that lives; 0: for ever.
  void set_timeout(double seconds);
  /// While a rank is busy with work that only it has, the others wait for it without a limit. They may nest.
  void begin_busy();
  void end_busy();
  /// This rank failed. Returns where all ranks did, with the exit code of the first of them; else the job ends.
  int fail(int exit_code, const std::string& message);

  // WaitObserver: of the waits that all ranks have alike.
  void arrived() override;
  void left() override;

private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace distzo2
