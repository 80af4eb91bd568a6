// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/cuda/stream.hpp"

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace distzo2 {

/// Times what one stream does, by pairs of events in it; the host never waits for them. Each is measured from the one
/// before it and added up in double: CUDA gives single precision, which after hours is coarser than a span is long. Of
/// more spans at a time than
/// `capacity` the later ones are not kept.
class SpanClock {
public:
  static constexpr std::size_t capacity = 1024;

  SpanClock();
  void begin(cudaStream_t stream, const LaneSpan& span);
  void end(cudaStream_t stream);
  /// Spans that are over, on trace_clock's axis, to the end of `out`. `zero` has been reached; it was at `zero_s`
  /// there.
  void take(const CudaEvent& zero, double zero_s, std::vector<LaneSpan>& out);

private:
  struct Timed {
    LaneSpan span;
    CudaEvent begin{true};
    std::unique_ptr<CudaEvent> end = std::make_unique<CudaEvent>(true);
    bool ended = false;
  };
  Timed& at(std::size_t i) { return ring_[(first_ + i) % ring_.size()]; }

  std::deque<Timed> ring_;
  std::size_t first_ = 0, count_ = 0;
  bool open_ = false;                                                    // the last one has begun and not ended
  std::unique_ptr<CudaEvent> last_ = std::make_unique<CudaEvent>(true);  // the end of the last span that was taken
  std::optional<double> last_s_;
};

}  // namespace distzo2
