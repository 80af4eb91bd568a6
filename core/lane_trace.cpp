// SPDX-License-Identifier: BSD-3-Clause
#include "core/lane_trace.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

double overlap_of(const Utilisation& u, double fill_and_drain_s) {
  double sum = 0, longest = 0;
  for (const LaneUse& lane : u.lanes) {
    sum += lane.busy_s;
    longest = std::max(longest, lane.busy_s);
  }
  const double could_overlap = sum - longest - fill_and_drain_s;
  return could_overlap > 0 ? std::clamp((sum - u.wall_s) / could_overlap, 0.0, 1.0) : 1.0;
}

}  // namespace

const char* name_of(LaneKind lane) {
  constexpr const char* names[lane_kinds] = {"read", "upload", "gather", "compute", "download", "write"};
  return names[static_cast<int>(lane)];
}

Utilisation utilisation(std::span<const LaneSpan> spans, double begin, double end, double fill_and_drain_s) {
  Utilisation u;
  u.wall_s = end - begin;
  for (const LaneSpan& s : spans) {
    const double from = std::max(s.begin, begin), to = std::min(s.end, end);
    if (to <= from) continue;
    LaneUse& lane = u.lanes[static_cast<int>(s.lane)];
    lane.busy_s += to - from;
    // Bytes of a span cut by the window: its share.
    lane.bytes += static_cast<std::uint64_t>(static_cast<double>(s.bytes) * (to - from) / (s.end - s.begin));
  }
  u.overlap = overlap_of(u, fill_and_drain_s);
  return u;
}

Utilisation together(const Utilisation& a, const Utilisation& b) {
  Utilisation u = a;
  u.wall_s += b.wall_s;
  for (int i = 0; i < lane_kinds; ++i) {
    u.lanes[i].busy_s += b.lanes[i].busy_s;
    u.lanes[i].bytes += b.lanes[i].bytes;
  }
  u.overlap = overlap_of(u, 0);
  return u;
}

}  // namespace distzo2
