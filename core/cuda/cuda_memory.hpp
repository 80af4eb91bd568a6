// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/compute_memory.hpp"
#include "core/cuda/span_clock.hpp"
#include "core/cuda/stream.hpp"

#include <mutex>

namespace distzo2 {

/// The current device's memory and its three streams. Plain calls of the CUDA runtime; no thread of its own.
class CudaMemory final : public ComputeMemory {
public:
  CudaMemory();
  ~CudaMemory() override;

  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override;
  HostArena& host() override { return *host_; }
  void put(std::byte* to, const std::byte* from, std::size_t bytes) override;
  void get(std::byte* to, const std::byte* from, std::size_t bytes) override;

  std::unique_ptr<DeviceEvent> make_event() override;
  void copy(LaneKind lane, std::byte* to, const std::byte* from, std::size_t bytes) override;
  void record(LaneKind lane, DeviceEvent& event) override;
  void wait(LaneKind lane, const DeviceEvent& event) override;
  void finish(const DeviceEvent& event) override;
  void drain() override;

  void begin_span(const LaneSpan& span) override;
  void end_span(LaneKind lane) override;
  void take_spans(std::vector<LaneSpan>& out) override;
  std::unique_ptr<Backend> make_backend(const BackendSetup& setup) override;
  std::uint64_t used_bytes() const override;

  /// What kernels run on: wrap it as a Kokkos instance, and let that go before this object.
  cudaStream_t compute_stream() const { return queues_[1].stream.get(); }

private:
  struct Queue {
    CudaStream stream;
    SpanClock clock;
    std::mutex mutex;  // of the clock
  };
  Queue& queue(LaneKind lane);
  void use_device() const;
  void copy_and_wait(std::byte* to, const std::byte* from, std::size_t bytes);

  int device_ = 0;
  std::unique_ptr<HostArena> host_;
  Queue queues_[3];  // upload, compute, download
  CudaEvent zero_{true};
  double zero_s_ = 0;
};

}  // namespace distzo2
