// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/device_map.hpp"

#include "core/error.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

/// The first two ranks with one device; none: {-1, -1}.
std::pair<int, int> ranks_of_one_device(const std::vector<RankPlace>& places) {
  for (int b = 0; b < std::ssize(places); ++b)
    for (int a = 0; a < b; ++a) {
      const RankPlace &first = places[static_cast<std::size_t>(a)], &second = places[static_cast<std::size_t>(b)];
      if (!first.device_id.empty() && first.device_id == second.device_id && first.host == second.host) return {a, b};
    }
  return {-1, -1};
}

constexpr std::pair<DeviceLink, const char*> names_of_links[] = {{DeviceLink::nvlink, "NVLink"},
                                                                 {DeviceLink::pcie, "PCIe"},
                                                                 {DeviceLink::host, "host memory"},
                                                                 {DeviceLink::same, "one device with"},
                                                                 {DeviceLink::unseen, "unknown link"}};

}  // namespace

int device_of_rank(int rank_of_node, int devices, std::optional<int> told) {
  if (!told) return rank_of_node % devices;
  if (*told < devices) return *told;
  throw Error(ExitCode::usage, "parallel/device: " + std::to_string(*told) + ", but this process sees " +
                                   std::to_string(devices) + (devices == 1 ? " device" : " devices") +
                                   "; accepted: 0 to " + std::to_string(devices - 1) + ", or auto");
}

bool shares_device(const std::vector<RankPlace>& places) {
  return ranks_of_one_device(places).first >= 0;
}

void refuse_shared_device(const std::vector<RankPlace>& places) {
  const auto [a, b] = ranks_of_one_device(places);
  if (a < 0) return;
  const RankPlace& place = places[static_cast<std::size_t>(b)];
  const auto ranks = std::ranges::count_if(places, [&](const RankPlace& p) { return p.host == place.host; });
  throw Error(ExitCode::usage,
              "ranks " + std::to_string(a) + " and " + std::to_string(b) + " on " + place.host +
                  " would both compute on " + place.device +
                  ": each would take half of its speed and hold a model of "
                  "its own. Start as many ranks a node as it has devices (" +
                  std::to_string(ranks) +
                  " were started there), let the batch system give each rank one of its own without hiding it from the "
                  "others, or name that device in parallel/device if it is meant");
}

std::string describe_links(std::span<const std::pair<int, DeviceLink>> links) {
  std::string text;
  for (const auto& [link, name] : names_of_links) {
    std::string ranks;
    int count = 0;
    for (const auto& [rank, its] : links) {
      if (its != link) continue;
      ranks += (count++ > 0 ? ", " : "") + std::to_string(rank);
    }
    if (count == 0) continue;
    text += std::string(text.empty() ? "" : ", ") + name + (link == DeviceLink::same ? "" : " to") +
            (count == 1 ? " rank " : " ranks ") + ranks;
  }
  return text;
}

}  // namespace distzo2
