// SPDX-License-Identifier: BSD-3-Clause
#include "app/rank_devices.hpp"

#include "core/compute_memory.hpp"
#include "parallel/device_map.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace distzo2 {

int choose_device(Job& job, const RunConfig& config) {
  // 1. This rank's device, or one line that there is none.
  const int devices = device_count();
  const std::optional<DeviceInfo> none = devices == 0 ? device_info() : std::nullopt;
  if (devices == 0 && !none) return -1;
  std::optional<int> told;
  if (config.parallel.device) told = static_cast<int>(*config.parallel.device);
  const int device = device_of_rank(job.rank_of_node(), devices, told);
  use_device(device);
  const DeviceInfo mine = device_info().value();

  // 2. What the others have.
  if (job.world().size() == 1) return device;
  job.share_device(mine.name + " at " + mine.bus_id, mine.id);
  if (!told) refuse_shared_device(job.places());

  // 3. What lies between them.
  std::vector<std::pair<int, DeviceLink>> links;
  const std::vector<std::string> buses = job.world().gather(mine.bus_id);
  for (int r = 0; r < job.world().size(); ++r) {
    const auto& place = job.places()[static_cast<std::size_t>(r)];
    if (r != job.world().rank() && place.host == job.place().host)
      links.emplace_back(r, device_link(buses[static_cast<std::size_t>(r)]));
  }
  job.share_links(describe_links(links));
  return device;
}

}  // namespace distzo2
