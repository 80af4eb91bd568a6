// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/cuda_memory.hpp"

#include "core/cuda/device_bytes.hpp"
#include "core/cuda/pinned_arena.hpp"
#include "core/error.hpp"
#include "core/lane.hpp"

namespace distzo2 {
namespace {

cudaEvent_t event_of(const DeviceEvent& event) {
  return static_cast<const CudaEvent&>(event).get();
}

}  // namespace

CudaMemory::CudaMemory() : host_(make_pinned_arena()) {
  check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
  check_cuda(cudaEventRecord(zero_.get(), compute_stream()), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(zero_.get()), "cudaEventSynchronize");
  zero_s_ = trace_clock();
}

CudaMemory::~CudaMemory() {
  cudaDeviceSynchronize();
}

void CudaMemory::use_device() const {
  // Each thread has a current device of its own.
  check_cuda(cudaSetDevice(device_), "cudaSetDevice");
}

CudaMemory::Queue& CudaMemory::queue(LaneKind lane) {
  switch (lane) {
    case LaneKind::upload:
      return queues_[0];
    case LaneKind::compute:
      return queues_[1];
    case LaneKind::download:
      return queues_[2];
    default:
      throw Error(ExitCode::internal, std::string("the lane ") + name_of(lane) + " is not the device's");
  }
}

std::shared_ptr<std::byte> CudaMemory::allocate(const std::string& label, std::size_t bytes) {
  use_device();
  return device_bytes(label, bytes);
}

void CudaMemory::copy_and_wait(std::byte* to, const std::byte* from, std::size_t bytes) {
  use_device();
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, compute_stream()), "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(compute_stream()), "cudaStreamSynchronize");
}

void CudaMemory::put(std::byte* to, const std::byte* from, std::size_t bytes) {
  copy_and_wait(to, from, bytes);
}

void CudaMemory::get(std::byte* to, const std::byte* from, std::size_t bytes) {
  copy_and_wait(to, from, bytes);
}

std::unique_ptr<DeviceEvent> CudaMemory::make_event() {
  use_device();
  return std::make_unique<CudaEvent>(false);
}

void CudaMemory::copy(LaneKind lane, std::byte* to, const std::byte* from, std::size_t bytes) {
  use_device();
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue(lane).stream.get()), "cudaMemcpyAsync");
}

void CudaMemory::record(LaneKind lane, DeviceEvent& event) {
  use_device();
  check_cuda(cudaEventRecord(event_of(event), queue(lane).stream.get()), "cudaEventRecord");
}

void CudaMemory::wait(LaneKind lane, const DeviceEvent& event) {
  use_device();
  check_cuda(cudaStreamWaitEvent(queue(lane).stream.get(), event_of(event), 0), "cudaStreamWaitEvent");
}

void CudaMemory::finish(const DeviceEvent& event) {
  use_device();
  const cudaError_t state = cudaEventQuery(event_of(event));
  if (state == cudaErrorNotReady)
    check_cuda(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
  else
    check_cuda(state, "cudaEventQuery");
}

void CudaMemory::drain() {
  use_device();
  for (const Queue& q : queues_) check_cuda(cudaStreamSynchronize(q.stream.get()), "cudaStreamSynchronize");
}

void CudaMemory::begin_span(const LaneSpan& span) {
  use_device();
  Queue& q = queue(span.lane);
  const std::lock_guard lock(q.mutex);
  q.clock.begin(q.stream.get(), span);
}

void CudaMemory::end_span(LaneKind lane) {
  use_device();
  Queue& q = queue(lane);
  const std::lock_guard lock(q.mutex);
  q.clock.end(q.stream.get());
}

void CudaMemory::take_spans(std::vector<LaneSpan>& out) {
  use_device();
  for (Queue& q : queues_) {
    const std::lock_guard lock(q.mutex);
    q.clock.take(zero_, zero_s_, out);
  }
}

std::uint64_t CudaMemory::used_bytes() const {
  use_device();
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

}  // namespace distzo2
