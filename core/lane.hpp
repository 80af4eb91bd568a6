// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/lane_trace.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace distzo2 {

/// A point in a lane's work that others wait for: a counter that only grows. On the host; a device's is a cudaEvent.
class Event {
public:
  void set(std::uint64_t value) {
    value_.store(value, std::memory_order_release);
    value_.notify_all();
  }
  void wait(std::uint64_t value) const;
  std::uint64_t reached() const { return value_.load(std::memory_order_acquire); }

private:
  std::atomic<std::uint64_t> value_{0};
};

/// Seconds on the clock that all lanes' spans are given in; its zero is the first call in the process.
double trace_clock();

/// A task as plain data, so that a queue of them never allocates.
struct LaneTask {
  void (*run)(void* context, const LaneTask& task) = nullptr;
  void* context = nullptr;
  int unit = -1, buffer = -1, bounce = -1;
  std::uint32_t version = 0;
  std::uint64_t bytes = 0;  // that it moves
  std::uint32_t step = 0;   // set by Lane::run
};

/// A worker thread that runs tasks in the order in which they were given, and waits for events between them. Once a
/// task has thrown, all behind it are skipped (their events are set all the same), and `rethrow` throws each time.
class Lane {
public:
  /// `capacity`: tasks, waits and records that can be queued at once; more make the giver wait.
  Lane(LaneKind kind, std::size_t capacity);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void run(const LaneTask& task, std::uint32_t step);
  void wait(const Event& event, std::uint64_t value);  // what is given later waits for it
  void record(Event& event, std::uint64_t value);      // set when all given before is done

  /// Blocks until all that was given is done; then throws what a task threw.
  void drain();
  void rethrow();

  /// Moves the spans of the tasks done so far to the end of `out`.
  void take_spans(std::vector<LaneSpan>& out);

private:
  struct Entry {
    enum class Kind : std::uint8_t { task, wait, record, stop } kind = Kind::task;
    LaneTask task;
    const Event* awaited = nullptr;
    Event* recorded = nullptr;
    std::uint64_t value = 0;
  };
  void push(const Entry& entry);
  void work();

  LaneKind kind_;
  std::vector<Entry> ring_;
  std::size_t head_ = 0, size_ = 0;  // of the ring; the entry that runs is still counted
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::vector<LaneSpan> spans_;  // the oldest that nobody took; more than `most_spans` are not kept
  std::thread thread_;
};

}  // namespace distzo2
