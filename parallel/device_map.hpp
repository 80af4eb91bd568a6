// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/compute_memory.hpp"
#include "parallel/rank_place.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// Which of the `devices` that it sees, at least one, a rank computes on: the one that it is told, else its number on
/// its node modulo their number. Throws Error (usage) naming parallel/device where there is none of that number.
int device_of_rank(int rank_of_node, int devices, std::optional<int> told);

/// Throws Error (usage) where two ranks of a job compute on one device: it names them, the device and what to do.
void refuse_shared_device(const std::vector<RankPlace>& places);
bool shares_device(const std::vector<RankPlace>& places);

/// What lies between a rank's device and those of the other ranks of its node: "NVLink to ranks 1, 2, host memory to
/// rank 3"; empty for none.
std::string describe_links(std::span<const std::pair<int, DeviceLink>> links);

}  // namespace distzo2
