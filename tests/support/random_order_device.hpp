// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/backend.hpp"
#include "core/compute_memory.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// A device of the worst kind that lanes and events allow: what is queued is done at any later time, in a random order
/// of the lanes, and only when somebody waits for it is it sure to have been done. Its addresses are not the host's:
/// reading one without asking the device is a segmentation fault. Whoever lacks a wait gets other bytes.
class RandomOrderDevice final : public ComputeMemory {
public:
  explicit RandomOrderDevice(std::uint32_t seed) : random_(seed), arena_(make_kokkos_arena()) {}

  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
    std::shared_ptr<std::byte> memory = arena_->allocate(label, bytes);
    return {memory.get() + far_away, [memory](std::byte*) {}};
  }
  HostArena& host() override { return *arena_; }
  void put(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    run_all(LaneKind::compute);
    std::memcpy(real(to), from, bytes);
  }
  void get(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    run_all(LaneKind::compute);
    std::memcpy(to, from - far_away, bytes);
  }

  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<Mark>(); }
  void copy(LaneKind lane, std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::byte* const source = const_cast<std::byte*>(from);
    const bool down = lane == LaneKind::download || is_here(from);
    queue(lane, [=, this] { std::memcpy(down ? to : real(to), down ? real(source) : from, bytes); });
  }
  /// Work of a kernel; `real` gives the addresses that it may use.
  void compute(std::function<void()> kernel) { queue(LaneKind::compute, std::move(kernel)); }
  static std::byte* real(std::byte* address) { return address - far_away; }

  void record(LaneKind lane, DeviceEvent& event) override {
    Mark& mark = static_cast<Mark&>(event);
    const std::lock_guard lock(mutex_);
    mark.lane = lane;
    mark.at = ++queued_[lane];
    lanes_[lane].push_back({});
    run_some();
  }
  void wait(LaneKind lane, const DeviceEvent& event) override {
    const Mark& mark = static_cast<const Mark&>(event);
    const std::lock_guard lock(mutex_);
    if (mark.at == 0) return;
    ++queued_[lane];
    lanes_[lane].push_back({nullptr, mark.lane, mark.at});
    run_some();
  }
  void finish(const DeviceEvent& event) override {
    const Mark& mark = static_cast<const Mark&>(event);
    const std::lock_guard lock(mutex_);
    if (mark.at > 0) run_until(mark.lane, mark.at);
  }
  void drain() override {
    const std::lock_guard lock(mutex_);
    for (const LaneKind lane : {LaneKind::upload, LaneKind::compute, LaneKind::download}) run_all(lane);
  }
  void begin_span(const LaneSpan& span) override {
    const std::lock_guard lock(mutex_);
    open_[span.lane] = span;
  }
  void end_span(LaneKind lane) override {
    const std::lock_guard lock(mutex_);
    spans_.push_back(open_[lane]);
  }
  void take_spans(std::vector<LaneSpan>& out) override {
    const std::lock_guard lock(mutex_);
    out.insert(out.end(), spans_.begin(), spans_.end());
    spans_.clear();
  }
  std::unique_ptr<Backend> make_backend(const BackendSetup&) override { return nullptr; }  // its kernels are the tests'
  std::uint64_t used_bytes() const override { return 0; }

private:
  static constexpr std::ptrdiff_t far_away = std::ptrdiff_t{1} << 47;  // no process has memory there

  struct Mark final : DeviceEvent {
    LaneKind lane = LaneKind::compute;
    std::uint64_t at = 0;  // entries of the lane that are done when it is reached
  };
  struct Entry {
    std::function<void()> work;  // none: a mark or a wait
    LaneKind awaited = LaneKind::compute;
    std::uint64_t until = 0;  // entries of that lane that must be done before
  };

  static bool is_here(const std::byte* address) { return reinterpret_cast<std::intptr_t>(address) >= far_away; }

  void queue(LaneKind lane, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    ++queued_[lane];
    lanes_[lane].push_back({std::move(work)});
    run_some();
  }
  void run_first(LaneKind lane) {
    Entry entry = std::move(lanes_[lane].front());
    lanes_[lane].pop_front();
    run_until(entry.awaited, entry.until);
    if (entry.work) entry.work();
    ++done_[lane];
  }
  void run_until(LaneKind lane, std::uint64_t at) {
    while (done_[lane] < at) run_first(lane);
  }
  void run_all(LaneKind lane) { run_until(lane, queued_[lane]); }
  void run_some() {
    for (int n = static_cast<int>(random_() % 4); n > 0; --n) {
      constexpr std::array lanes{LaneKind::upload, LaneKind::compute, LaneKind::download};
      const LaneKind lane = lanes[random_() % lanes.size()];
      if (!lanes_[lane].empty()) run_first(lane);
    }
  }

  std::mutex mutex_;
  std::mt19937 random_;
  std::unique_ptr<HostArena> arena_;
  std::map<LaneKind, std::deque<Entry>> lanes_;
  std::map<LaneKind, std::uint64_t> queued_, done_;
  std::map<LaneKind, LaneSpan> open_;
  std::vector<LaneSpan> spans_;
};

}  // namespace distzo2
