// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/host_arena.hpp"
#include "core/lane_trace.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace distzo2 {

class Backend;        // core/backend.hpp
struct BackendSetup;  // the same

/// A point in a lane's work that other lanes wait for: a cudaEvent. Only the memory that made it looks inside. A wait
/// is for the latest record that was queued before it; for none, where there was none.
struct DeviceEvent {
  DeviceEvent() = default;
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  virtual ~DeviceEvent() = default;
};

/// The memory in which stages compute where it is not the host's, as the store and the pipeline see it. It has three
/// lanes: upload, compute, download. Work is queued on them and done in order; whoever queues it does not wait. Any
/// thread may call, one at a time for each lane.
class ComputeMemory {
public:
  ComputeMemory() = default;
  ComputeMemory(const ComputeMemory&) = delete;
  ComputeMemory& operator=(const ComputeMemory&) = delete;
  virtual ~ComputeMemory() = default;

  /// Zeroed and aligned to 256 bytes; the host cannot read it.
  virtual std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) = 0;
  /// Host memory that lanes copy from and to: pinned.
  virtual HostArena& host() = 0;

  // Between passes: after all that the compute lane was given. They return when the copy is done.
  virtual void put(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void get(std::byte* to, const std::byte* from, std::size_t bytes) = 0;

  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  virtual void copy(LaneKind lane, std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  virtual void record(LaneKind lane, DeviceEvent& event) = 0;
  virtual void wait(LaneKind lane, const DeviceEvent& event) = 0;
  /// The caller waits.
  virtual void finish(const DeviceEvent& event) = 0;
  virtual void drain() = 0;

  /// What a lane does between the two is one span, timed where it is done; `begin` and `end` are filled in there.
  virtual void begin_span(const LaneSpan& span) = 0;
  virtual void end_span(LaneKind lane) = 0;
  /// Moves the spans that are over to the end of `out`.
  virtual void take_spans(std::vector<LaneSpan>& out) = 0;

  /// What computes in this memory, on its compute lane. It goes before the memory does.
  virtual std::unique_ptr<Backend> make_backend(const BackendSetup& setup) = 0;

  /// Bytes taken on the device now, by whomever. All of a model is allocated before its first step: it is the peak too.
  virtual std::uint64_t used_bytes() const = 0;
};

/// The device that this process computes on.
struct DeviceInfo {
  std::string name, compute_capability, driver_cuda;  // "NVIDIA H200", "9.0", "13.0"
  std::string bus_id, id;                             // "0000:1B:00.0"; what no other device or part of one has
  std::uint64_t free_bytes = 0, total_bytes = 0;
};

/// Devices that this process sees, and its choice of one, from 0, before anything else is done with it. None in a
/// program for CPUs.
int device_count();
void use_device(int device);

/// What lies between the device that this process computes on and the one at that bus id.
enum class DeviceLink : std::uint8_t { nvlink, pcie, host, same, unseen };
DeviceLink device_link(const std::string& bus_id);

/// None in a program for CPUs. In one for CUDA throws Error (usage) where there is no device or driver.
std::optional<DeviceInfo> device_info();

/// The memory of that device; null in a program for CPUs.
std::unique_ptr<ComputeMemory> make_device_memory();

}  // namespace distzo2
