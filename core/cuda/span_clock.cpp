// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/span_clock.hpp"

#include <utility>

namespace distzo2 {

SpanClock::SpanClock() : ring_(capacity) {}

void SpanClock::begin(cudaStream_t stream, const LaneSpan& span) {
  open_ = count_ < ring_.size();
  if (!open_) return;
  Timed& timed = at(count_++);
  timed.span = span;
  timed.ended = false;
  check_cuda(cudaEventRecord(timed.begin.get(), stream), "cudaEventRecord");
}

void SpanClock::end(cudaStream_t stream) {
  if (!open_) return;
  open_ = false;
  Timed& timed = at(count_ - 1);
  check_cuda(cudaEventRecord(timed.end->get(), stream), "cudaEventRecord");
  timed.ended = true;
}

void SpanClock::take(const CudaEvent& zero, double zero_s, std::vector<LaneSpan>& out) {
  const auto seconds = [](const CudaEvent& from, const CudaEvent& to) {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime");
    return static_cast<double>(ms) * 1e-3;
  };
  for (; count_ > 0 && at(0).ended; --count_, first_ = (first_ + 1) % ring_.size()) {
    Timed& timed = at(0);
    const cudaError_t state = cudaEventQuery(timed.end->get());
    if (state == cudaErrorNotReady) return;
    check_cuda(state, "cudaEventQuery");
    timed.span.begin = last_s_.value_or(zero_s) + seconds(last_s_ ? *last_ : zero, timed.begin);
    timed.span.end = timed.span.begin + seconds(timed.begin, *timed.end);
    last_s_ = timed.span.end;
    std::swap(last_, timed.end);
    out.push_back(timed.span);
  }
}

}  // namespace distzo2
