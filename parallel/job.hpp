// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parallel/communicator.hpp"
#include "parallel/heartbeat.hpp"
#include "parallel/mpi_session.hpp"
#include "parallel/rank_place.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// The ranks that this process is one of: MPI, who they are, and their common end. Alone without a launcher.
class Job {
public:
  /// By all ranks, before threads are made. `say` prints a message of a failed rank.
  Job(const std::optional<Launcher>& launcher, std::function<void(const std::string&)> say);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  Communicator& world() { return session_.world(); }
  bool is_first() { return world().is_first(); }
  const RankPlace& place() const { return places_[static_cast<std::size_t>(rank_)]; }  // of this rank
  const std::vector<RankPlace>& places() const { return places_; }                     // of all
  int ranks_of_node() const { return ranks_of_node_; }
  int rank_of_node() const { return rank_of_node_; }
  /// This rank's device, and what lies between it and those of others, into the places of all. By all ranks.
  void share_device(const std::string& device, const std::string& id);
  void share_links(const std::string& links);
  /// Of this rank's node, with itself: those that may use the same cores as this one.
  int ranks_on_these_cores() const { return ranks_on_these_cores_; }

  void set_timeout(double seconds) { heartbeat_->set_timeout(seconds); }
  /// As Heartbeat::fail.
  int fail(int exit_code, const std::string& message) { return heartbeat_->fail(exit_code, message); }

  /// During its life this rank does what only it has to do, and the others wait.
  class Busy {
  public:
    explicit Busy(Job& job) : job_(job) { job_.heartbeat_->begin_busy(); }
    ~Busy() { job_.heartbeat_->end_busy(); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

  private:
    Job& job_;
  };

  /// During its life this is called before the message of a failed rank is printed, by another thread. One at a time.
  class BeforeMessage {
  public:
    BeforeMessage(Job& job, std::function<void()> call) : job_(job) { job_.set_before_message(std::move(call)); }
    ~BeforeMessage() { job_.set_before_message(nullptr); }
    BeforeMessage(const BeforeMessage&) = delete;
    BeforeMessage& operator=(const BeforeMessage&) = delete;

  private:
    Job& job_;
  };

private:
  void set_before_message(std::function<void()> call);

  std::mutex before_message_mutex_;
  std::function<void()> before_message_;
  MpiSession session_;
  int rank_ = 0;
  std::vector<RankPlace> places_;
  int ranks_of_node_ = 1, rank_of_node_ = 0, ranks_on_these_cores_ = 1;
  std::optional<Heartbeat> heartbeat_;
};

}  // namespace distzo2
