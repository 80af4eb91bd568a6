// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/cuda/stream.hpp"

#include <cstddef>
#include <deque>
#include <vector>

namespace distzo2 {

/// Times what one stream does, by pairs of events in it; the host never waits for them. Of more spans at a time than
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
    CudaEvent begin{true}, end{true};
    bool ended = false;
  };
  Timed& at(std::size_t i) { return ring_[(first_ + i) % ring_.size()]; }

  std::deque<Timed> ring_;
  std::size_t first_ = 0, count_ = 0;
  bool open_ = false;  // the last one has begun and not ended
};

}  // namespace distzo2
