// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace distzo2 {

/// Where on its machine a process runs.
struct RankPlace {
  std::string host;
  std::string cores;  // that it may use: "0-3,8"
  std::string nodes;  // NUMA nodes of these: "0"
  // Where it computes on a device: "NVIDIA H200 at 0000:1B:00.0", what no other device has, and what lies between it
  // and those of the other ranks of the node.
  std::string device, device_id, links;
};

/// Of this thread and so, before others are made, of this process, as the system and hwloc tell it. What cannot be
/// found is "unknown".
RankPlace this_place();

}  // namespace distzo2
