// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace distzo2 {

/// Plain threads that spread a transfer over several requests in flight: a disk gives its full bandwidth only to a
/// queue. Signals are blocked in them.
class IoPool {
public:
  explicit IoPool(int threads);
  ~IoPool();
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;

  /// work(i) for each i of [0, count), here and on the pool's threads; returns when all have ended. The first exception
  /// is thrown again, then what was not begun is left out. Several threads may call it: the pool serves them in turn.
  template <class F>
  void run(int count, F&& work) {
    Job job;
    job.call = [](void* w, int i) { (*static_cast<std::remove_reference_t<F>*>(w))(i); };
    job.work = const_cast<void*>(static_cast<const void*>(&work));
    job.count = count;
    run_job(job);
  }

private:
  struct Job {
    void (*call)(void* work, int i) = nullptr;
    void* work = nullptr;
    int count = 0, next = 0, running = 0;
    std::exception_ptr error;
  };
  void run_job(Job& job);
  void one_of(Job& job, std::unique_lock<std::mutex>& lock);
  void help();

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::vector<Job*> jobs_;  // that have something left to begin
  std::size_t turn_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace distzo2
