// SPDX-License-Identifier: BSD-3-Clause
#include "core/node_memory.hpp"

#include "core/node_chunks.hpp"
#include "core/node_reads.hpp"
#include "core/node_slices.hpp"
#include "core/node_sums.hpp"
#include "core/placement.hpp"
#include "core/round_up.hpp"
#include "core/tensor_table.hpp"

namespace distzo2 {

std::size_t node_memory_bytes(const Placement& placement, int owners) {
  std::size_t bytes = round_up(NodeSlices::bytes(static_cast<int>(placement.units.size()), owners), page_bytes) +
                      round_up(NodeSums::bytes(owners), page_bytes);
  if (const std::size_t reads = NodeReads::bytes(placement, owners); reads > 0)
    bytes += reads + round_up(NodeChunks::bytes(static_cast<int>(placement.chunks.chunks.size()), owners), page_bytes);
  // With what is skipped before a unit's one-dimensional tensors, and to the next page.
  for (const Unit& u : placement.units)
    if (u.tier != Tier::disk)
      bytes += round_up(u.bytes, page_bytes) + static_cast<std::size_t>(index_alignment) * sizeof(float) + page_bytes;
  return bytes;
}

}  // namespace distzo2
