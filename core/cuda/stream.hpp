// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/compute_memory.hpp"
#include "core/cuda/check.hpp"

namespace distzo2 {

/// A stream that does not wait for the legacy default stream, nor that for it.
class CudaStream {
public:
  CudaStream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  cudaStream_t get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};

/// An event that orders streams, or one that is timed. Who waits for it on the host sleeps.
class CudaEvent final : public DeviceEvent {
public:
  explicit CudaEvent(bool timed) {
    const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming | cudaEventBlockingSync;
    check_cuda(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  cudaEvent_t get() const { return event_; }

private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace distzo2
