// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/run_folder.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace distzo2 {

/// A process as the lock file of the run that it works on names it.
struct LockHolder {
  std::string host;
  std::uint64_t pid = 0;
  std::uint64_t started = 0;  // in ticks since boot, as Linux tells: another process may get the same number
  std::string boot;           // of the running kernel
  std::string job;            // "slurm 4711", empty outside a batch system
  std::string since;          // when the run was locked, in UTC
};
LockHolder this_process();

/// As the lock file's text, which explains itself, and back; none where the text is no holder's.
std::string text_of(const LockHolder& holder);
std::optional<LockHolder> holder_of(const std::string& text);

/// What a holder that a lock file names is, seen from here.
enum class HolderState : std::uint8_t {
  works,   // it is alive
  gone,    // it has ended, or its machine has been started anew, or its batch job was requeued
  unknown  // on another machine
};
/// `locked`: the file is locked by `here` now.
HolderState state_of(const LockHolder& holder, const LockHolder& here, bool locked);

/// Whether a process works in this folder now, as far as its lock tells. It is looked at, not taken: a run that starts
/// at this moment is not disturbed.
bool is_worked_on(const RunFolder& folder);

/// One process at a time works in a run folder: Error (usage) where another one does, or may: it says which. The file
/// is locked, of which the system lets go however the process ends (on a file, which NFS has for all nodes, where a
/// lock on a folder is each node's own), and it names its holder, as there are file systems whose locks are each node's
/// or none. A holder that is known to be gone is in nobody's way.
class RunLock {
public:
  explicit RunLock(const RunFolder& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  const std::string& problem() const { return problem_; }  // empty: the file system keeps others away
  const std::string& note() const { return note_; }        // whose lock was taken over; empty: nobody's

private:
  int fd_ = -1;
  bool holds_ = false;
  std::string problem_, note_;
};

}  // namespace distzo2
