// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/rank_place.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace distzo2 {
namespace {

using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Bitmap make_bitmap() {
  return {hwloc_bitmap_alloc(), &hwloc_bitmap_free};
}

std::string list_of(const hwloc_bitmap_s* bitmap) {
  std::array<char, 1024> text{};
  hwloc_bitmap_list_snprintf(text.data(), text.size(), bitmap);
  return text[0] == '\0' ? "unknown" : text.data();
}

}  // namespace

RankPlace this_place() {
  RankPlace place{"unknown", "unknown", "unknown", {}, {}, {}};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) place.host = host.data();
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return place;
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> topology(made, &hwloc_topology_destroy);
  if (hwloc_topology_load(made) != 0) return place;
  const Bitmap cores = make_bitmap(), nodes = make_bitmap();
  if (!cores || !nodes || hwloc_get_cpubind(made, cores.get(), HWLOC_CPUBIND_THREAD) != 0) return place;
  hwloc_bitmap_and(cores.get(), cores.get(), hwloc_topology_get_topology_cpuset(made));
  place.cores = list_of(cores.get());
  if (hwloc_cpuset_to_nodeset(made, cores.get(), nodes.get()) == 0) place.nodes = list_of(nodes.get());
  return place;
}

}  // namespace distzo2
