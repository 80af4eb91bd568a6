// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/heartbeat.hpp"

#include "core/error.hpp"
#include "core/signals_blocked.hpp"
#include "parallel/mpi_handle.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace distzo2 {
namespace {

enum Tag : int { beat_tag = 1, failure_tag = 2, end_tag = 3, bye_tag = 4 };

/// What a rank says of itself with each beat.
struct Beat {
  std::uint64_t arrivals = 0;  // waits begun
  std::uint64_t busy = 0;
};

/// A rank failed: it says so itself, or the one after it does not hear from it any more.
struct Failure {
  std::int32_t about = 0;
  std::int32_t exit_code = 0;
  std::string text;
};

std::string encoded(const Failure& f) {
  std::string bytes(sizeof f.about + sizeof f.exit_code, '\0');
  std::memcpy(bytes.data(), &f.about, sizeof f.about);
  std::memcpy(bytes.data() + sizeof f.about, &f.exit_code, sizeof f.exit_code);
  return bytes + f.text;
}

Failure decoded(const std::string& bytes) {
  Failure f;
  constexpr std::size_t head = sizeof f.about + sizeof f.exit_code;
  if (bytes.size() < head) return f;
  std::memcpy(&f.about, bytes.data(), sizeof f.about);
  std::memcpy(&f.exit_code, bytes.data() + sizeof f.about, sizeof f.exit_code);
  f.text = bytes.substr(head);
  return f;
}

/// What a job's output needs to reach the launcher before the ranks are killed.
constexpr auto time_to_be_read = std::chrono::milliseconds(200);
/// Beyond ticks_to_agree, what rank 0 has to end a job before the rank that asked for it does so itself.
constexpr int ticks_of_grace = 30;

}  // namespace

class Heartbeat::Thread {
public:
  Thread(Communicator comm, std::vector<std::string> hosts, std::function<void(const std::string&)> say,
         std::function<void(int)> end, const HeartbeatPace& pace)
      : comm_(std::move(comm)),
        mpi_(*comm_.mpi()),
        hosts_(std::move(hosts)),
        say_(std::move(say)),
        end_(std::move(end)),
        pace_(pace) {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  }
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  std::atomic<std::uint64_t> arrivals{0};
  std::atomic<bool> waiting{false};
  std::atomic<int> busy{0};
  std::atomic<double> timeout_s{0.0};

  int fail(int exit_code, const std::string& message) {
    std::unique_lock lock(mutex_);
    mine_ = Failure{mpi_.rank, exit_code, message};
    wake_.notify_all();
    ended_.wait(lock, [&] { return end_code_.has_value(); });
    return *end_code_;
  }

private:
  int before() const { return (mpi_.rank + mpi_.size - 1) % mpi_.size; }
  int after() const { return (mpi_.rank + 1) % mpi_.size; }

  void run() {
    try {
      bool leaving = false;
      for (int tick = 0;; ++tick) {
        receive();
        if (tick % pace_.ticks_of_beat == 0) {
          if (!leaving) beat();
          watch();
        }
        take_own_failure();
        end_if_failed();
        // Each leaves when the one before has: no message may be under way when the communicator goes.
        if (leaving && !watching_) break;
        std::unique_lock lock(mutex_);
        if (stop_ && !leaving) {
          leaving = true;
          lock.unlock();
          send(after(), bye_tag, "");
          continue;
        }
        if (!leaving) {
          wake_.wait_for(lock, std::chrono::milliseconds(pace_.tick_ms));
          continue;
        }
        lock.unlock();
        for (int ms = 0; ms < pace_.tick_ms && watching_; ms += 5) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          receive();
        }
      }
      for (Sent& s : sent_) wait_for(s.request, "MPI_Isend");
    } catch (const std::exception& e) {  // of MPI itself: nothing can be agreed on any more
      end({mpi_.rank, static_cast<int>(ExitCode::rank_failed), e.what()});
    }
  }

  void send(int to, Tag tag, std::string bytes) {
    std::erase_if(sent_, [](Sent& s) {
      int done = 0;
      check_mpi(MPI_Test(&s.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
    if (tag == beat_tag && sent_.size() > 3) return;  // they do not get through: the next rank is stopped
    Sent& s = sent_.emplace_back(Sent{std::move(bytes), MPI_REQUEST_NULL});
    check_mpi(MPI_Isend(s.bytes.data(), static_cast<int>(s.bytes.size()), MPI_BYTE, to, tag, mpi_.comm, &s.request),
              "MPI_Isend");
  }

  void receive() {
    for (;;) {
      int there = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_.comm, &there, &status), "MPI_Iprobe");
      if (there == 0) return;
      int size = 0;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
      std::string bytes(static_cast<std::size_t>(size), '\0');
      check_mpi(MPI_Recv(bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, mpi_.comm, &status),
                "MPI_Recv");
      switch (status.MPI_TAG) {
        case beat_tag:
          if (bytes.size() == sizeof heard_) std::memcpy(&heard_, bytes.data(), sizeof heard_);
          missed_ = 0;
          break;
        case failure_tag:
          note(decoded(bytes), status.MPI_SOURCE);
          break;
        case end_tag:
          finish(decoded(bytes).exit_code);
          break;
        default:
          watching_ = false;
      }
    }
  }

  void beat() {
    const Beat mine{arrivals.load(), busy.load() > 0 ? 1U : 0U};
    std::string bytes(sizeof mine, '\0');
    std::memcpy(bytes.data(), &mine, sizeof mine);
    send(after(), beat_tag, std::move(bytes));
  }

  /// The rank before: does it live, and does it keep this one waiting?
  void watch() {
    if (!watching_ || told_) return;
    if (++missed_ > pace_.missed_beats) {
      tell({before(), static_cast<int>(ExitCode::rank_failed),
            "no sign of life any more: it was killed or stopped, or its node is lost"});
      return;
    }
    // In one and the same wait: what was heard is older than this rank's own count.
    const std::uint64_t mine = arrivals.load();
    const bool same_wait = waiting.load() && std::exchange(arrivals_seen_, mine) == mine;
    beats_behind_ = same_wait && heard_.busy == 0 && heard_.arrivals < mine ? beats_behind_ + 1 : 0;
    const double limit_s = timeout_s.load();
    const double waited_s = 1e-3 * pace_.tick_ms * pace_.ticks_of_beat * beats_behind_;
    if (limit_s > 0 && waited_s > limit_s) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%g s", limit_s);
      tell({before(), static_cast<int>(ExitCode::rank_failed),
            std::string("it lives, but has kept the others waiting for longer than parallel/timeout: ") + text.data()});
    }
  }

  void take_own_failure() {
    std::unique_lock lock(mutex_);
    if (!mine_ || told_) return;
    const Failure mine = *mine_;
    lock.unlock();
    tell(mine);
  }

  /// To rank 0, once.
  void tell(Failure failure) {
    told_ = std::move(failure);
    if (mpi_.rank == 0)
      note(*told_, 0);
    else if (told_->about == 0 && told_->about != mpi_.rank && missed_ > pace_.missed_beats)
      end(*told_);  // there is nobody to tell
    else
      send(0, failure_tag, encoded(*told_));
  }

  void note(const Failure& f, int by) { (f.about == by ? failures_ : found_).emplace(f.about, f); }

  void end_if_failed() {
    if (mpi_.rank != 0) {  // where rank 0 does nothing about it, it is the one that failed
      if (told_ && !finished_ && ++ticks_failed_ > pace_.ticks_to_agree + ticks_of_grace) end(*told_);
      return;
    }
    if ((failures_.empty() && found_.empty()) || finished_) return;
    const Failure& first = failures_.empty() ? found_.begin()->second : failures_.begin()->second;
    if (std::ssize(failures_) < mpi_.size) {
      if (++ticks_failed_ > pace_.ticks_to_agree) end(first);
      return;
    }
    bool alike = true;
    for (const auto& [rank, failure] : failures_) alike = alike && failure.text == first.text;
    say_(alike ? first.text : named(first));
    for (int rank = 1; rank < mpi_.size; ++rank) send(rank, end_tag, encoded(first));
    finish(first.exit_code);
  }

  std::string named(const Failure& f) const {
    return "rank " + std::to_string(f.about) + " on " + hosts_[static_cast<std::size_t>(f.about)] + ": " + f.text;
  }

  void end(const Failure& f) {
    say_(named(f));
    std::this_thread::sleep_for(time_to_be_read);
    end_(f.exit_code);
  }

  void finish(int exit_code) {
    finished_ = true;
    const std::lock_guard lock(mutex_);
    end_code_ = exit_code;
    ended_.notify_all();
  }

  Communicator comm_;
  const Communicator::Mpi& mpi_;
  std::vector<std::string> hosts_;
  std::function<void(const std::string&)> say_;
  std::function<void(int)> end_;
  HeartbeatPace pace_;

  // The thread's own.
  struct Sent {
    std::string bytes;
    MPI_Request request;
  };
  std::list<Sent> sent_;
  Beat heard_;  // of the rank before
  int missed_ = 0, beats_behind_ = 0, ticks_failed_ = 0;
  bool watching_ = true, finished_ = false;
  std::optional<Failure> told_;
  std::uint64_t arrivals_seen_ = 0;
  std::map<int, Failure> failures_, found_;  // of rank 0, by rank: as it says itself, as another one found

  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, ended_;
  bool stop_ = false;
  std::optional<Failure> mine_;
  std::optional<int> end_code_;
  std::thread thread_;  // last: it uses all of the above
};

Heartbeat::Heartbeat(Communicator comm, std::vector<std::string> hosts, std::function<void(const std::string&)> say,
                     std::function<void(int)> end, const HeartbeatPace& pace) {
  if (comm.size() > 1)
    thread_ = std::make_unique<Thread>(std::move(comm), std::move(hosts), std::move(say), std::move(end), pace);
}

Heartbeat::~Heartbeat() = default;

void Heartbeat::set_timeout(double seconds) {
  if (thread_) thread_->timeout_s = seconds;
}
void Heartbeat::begin_busy() {
  if (thread_) ++thread_->busy;
}
void Heartbeat::end_busy() {
  if (thread_) --thread_->busy;
}

void Heartbeat::arrived() {
  if (!thread_) return;
  ++thread_->arrivals;
  thread_->waiting = true;
}
void Heartbeat::left() {
  if (thread_) thread_->waiting = false;
}

int Heartbeat::fail(int exit_code, const std::string& message) {
  return thread_ ? thread_->fail(exit_code, message) : exit_code;
}

}  // namespace distzo2
