// SPDX-License-Identifier: BSD-3-Clause
#include "io/io_pool.hpp"

#include "core/signals_blocked.hpp"

#include <algorithm>
#include <utility>

namespace distzo2 {

IoPool::IoPool(int threads) {
  jobs_.reserve(16);  // more callers at once than lanes can be
  const SignalsBlocked blocked;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { help(); });
}

IoPool::~IoPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void IoPool::one_of(Job& job, std::unique_lock<std::mutex>& lock) {
  const int i = job.next++;
  ++job.running;
  if (job.next == job.count) std::erase(jobs_, &job);
  lock.unlock();
  std::exception_ptr error;
  try {
    job.call(job.work, i);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    if (!job.error) job.error = error;
    job.next = job.count;
    std::erase(jobs_, &job);
  }
  // Under the lock: once it is free the caller may return, and the job is gone.
  if (--job.running == 0 && job.next == job.count) ended_.notify_all();
}

void IoPool::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    one_of(*jobs_[turn_++ % jobs_.size()], lock);
  }
}

void IoPool::run_job(Job& job) {
  if (job.count <= 0) return;
  std::unique_lock lock(mutex_);
  jobs_.push_back(&job);
  if (job.count > 1) wake_.notify_all();
  while (job.next < job.count) one_of(job, lock);
  ended_.wait(lock, [&] { return job.running == 0; });
  if (job.error) std::rethrow_exception(std::exchange(job.error, nullptr));
}

}  // namespace distzo2
