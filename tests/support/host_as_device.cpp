// SPDX-License-Identifier: BSD-3-Clause
#include "core/lane.hpp"
#include "tests/support/host_device.hpp"
#include "tests/support/test_device.hpp"

#include <cstring>
#include <map>
#include <mutex>

namespace distzo2 {
namespace {

/// Host memory in a device's place. Whatever is queued is done at once, by the thread that queues it.
class HostAsDevice final : public ComputeMemory {
public:
  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
    return arena_->allocate(label, bytes);
  }
  HostArena& host() override { return *arena_; }
  void put(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void get(std::byte* to, const std::byte* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<DeviceEvent>(); }
  void copy(LaneKind, std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  // Nothing is ever left to wait for; the lock makes what one thread has copied seen by the one that asks.
  void record(LaneKind, DeviceEvent&) override { const std::lock_guard lock(mutex_); }
  void wait(LaneKind, const DeviceEvent&) override { const std::lock_guard lock(mutex_); }
  void finish(const DeviceEvent&) override { const std::lock_guard lock(mutex_); }
  void drain() override {}
  void begin_span(const LaneSpan& span) override {
    const std::lock_guard lock(mutex_);
    open_[span.lane] = span;
    open_[span.lane].begin = trace_clock();
  }
  void end_span(LaneKind lane) override {
    const std::lock_guard lock(mutex_);
    open_[lane].end = trace_clock();
    spans_.push_back(open_[lane]);
  }
  void take_spans(std::vector<LaneSpan>& out) override {
    const std::lock_guard lock(mutex_);
    out.insert(out.end(), spans_.begin(), spans_.end());
    spans_.clear();
  }
  std::unique_ptr<Backend> make_backend(const BackendSetup& setup) override { return make_host_device_backend(setup); }
  std::uint64_t used_bytes() const override { return 0; }

private:
  std::unique_ptr<HostArena> arena_ = make_kokkos_arena();
  std::mutex mutex_;
  std::map<LaneKind, LaneSpan> open_;
  std::vector<LaneSpan> spans_;
};

}  // namespace

ComputeMemory& test_device_memory() {
  static HostAsDevice device;
  return device;
}

}  // namespace distzo2
