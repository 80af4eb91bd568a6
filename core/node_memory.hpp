// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/host_arena.hpp"

#include <cstddef>
#include <string>

namespace distzo2 {

struct Placement;

/// Host memory that the ranks of a node share: each owns a slice of every unit of parameters in it. All owners ask for
/// the same pieces in the same order and get the same memory, zeroed.
struct NodeMemory : HostArena {
  virtual int owner() const = 0;  // this rank's place among them
  virtual int owners() const = 0;
  /// Told now and then while this rank waits for another, so long in all, and for what of that one's, in words. Throws
  /// where it need not wait any longer.
  virtual void still_waiting(int owner, double seconds, const std::string& awaited) = 0;
};

/// What it has to hold for a placement, at most: the units in memory, those that are read for all owners, and words.
std::size_t node_memory_bytes(const Placement& placement, int owners);

}  // namespace distzo2
