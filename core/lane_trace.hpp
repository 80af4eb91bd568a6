// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace distzo2 {

/// The lanes of the pipeline (design section 4), in the order of a unit's way through it.
enum class LaneKind : std::uint8_t { read, upload, gather, compute, download, write };
constexpr int lane_kinds = 6;
const char* name_of(LaneKind lane);

/// What a lane did in one stretch of time; seconds since the trace began.
struct LaneSpan {
  LaneKind lane = LaneKind::compute;
  std::int32_t unit = -1;  // what it worked on; -1: nothing that has a number
  std::uint32_t step = 0;
  double begin = 0, end = 0;
  std::uint64_t bytes = 0;  // moved
};

/// Spans that a lane keeps until they are taken, after each step: a few for each unit that a step moves.
constexpr std::size_t most_spans = std::size_t{1} << 12;

/// A lane's share of a stretch of time.
struct LaneUse {
  double busy_s = 0;
  std::uint64_t bytes = 0;
};

/// Busy time and bytes of each lane within [begin, end), and the overlap of section 4: (sum of lane busy - wall) /
/// (sum - longest lane - fill and drain), 1 where nothing could overlap.
struct Utilisation {
  double wall_s = 0;
  LaneUse lanes[lane_kinds];
  double overlap = 1;
};
Utilisation utilisation(std::span<const LaneSpan> spans, double begin, double end, double fill_and_drain_s);

/// Of two stretches of time as one.
Utilisation together(const Utilisation& a, const Utilisation& b);

}  // namespace distzo2
