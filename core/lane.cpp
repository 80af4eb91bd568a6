// SPDX-License-Identifier: BSD-3-Clause
#include "core/lane.hpp"

#include "core/signals_blocked.hpp"

namespace distzo2 {
double trace_clock() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point zero = Clock::now();
  return std::chrono::duration<double>(Clock::now() - zero).count();
}

void Event::wait(std::uint64_t value) const {
  for (std::uint64_t now = reached(); now < value; now = reached()) value_.wait(now, std::memory_order_acquire);
}

Lane::Lane(LaneKind kind, std::size_t capacity) : kind_(kind), ring_(capacity) {
  trace_clock();
  spans_.reserve(most_spans);
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { work(); });
}

Lane::~Lane() {
  push({Entry::Kind::stop, {}, nullptr, nullptr, 0});
  thread_.join();
}

void Lane::push(const Entry& entry) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return size_ < ring_.size(); });
  ring_[(head_ + size_++) % ring_.size()] = entry;
  changed_.notify_all();
}

void Lane::run(const LaneTask& task, std::uint32_t step) {
  Entry entry{Entry::Kind::task, task, nullptr, nullptr, 0};
  entry.task.step = step;
  push(entry);
}

void Lane::wait(const Event& event, std::uint64_t value) {
  push({Entry::Kind::wait, {}, &event, nullptr, value});
}

void Lane::record(Event& event, std::uint64_t value) {
  push({Entry::Kind::record, {}, nullptr, &event, value});
}

void Lane::drain() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return size_ == 0; });
  }
  rethrow();
}

void Lane::rethrow() {
  if (!failed_.load(std::memory_order_acquire)) return;
  std::exception_ptr failure;
  {
    const std::lock_guard lock(mutex_);
    failure = failure_;
  }
  std::rethrow_exception(failure);
}

void Lane::take_spans(std::vector<LaneSpan>& out) {
  const std::lock_guard lock(mutex_);
  out.insert(out.end(), spans_.begin(), spans_.end());
  spans_.clear();
}

void Lane::work() {
  for (;;) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return size_ > 0; });
      entry = ring_[head_];
    }
    if (entry.kind == Entry::Kind::wait) entry.awaited->wait(entry.value);
    LaneSpan span{kind_, entry.task.unit, entry.task.step, trace_clock(), 0, entry.task.bytes};
    std::exception_ptr failure;
    if (entry.kind == Entry::Kind::task && !failed_.load(std::memory_order_acquire)) {
      try {
        entry.task.run(entry.task.context, entry.task);
      } catch (...) {
        failure = std::current_exception();
      }
    }
    span.end = trace_clock();
    if (entry.kind == Entry::Kind::record) entry.recorded->set(entry.value);
    {
      const std::lock_guard lock(mutex_);
      if (failure) {
        failure_ = failure;
        failed_.store(true, std::memory_order_release);
      }
      if (entry.kind == Entry::Kind::task && spans_.size() < most_spans) spans_.push_back(span);
      head_ = (head_ + 1) % ring_.size();
      --size_;
    }
    changed_.notify_all();
    if (entry.kind == Entry::Kind::stop) return;
  }
}

}  // namespace distzo2
