// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/node_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace distzo2 {

/// Global indices [begin, end).
struct SliceRange {
  std::int64_t begin = 0, end = 0;
};

/// The slice of a unit of global indices [first, end) that is `owner`'s: nearly equal parts, cut at multiples of
/// index_alignment, so that no slice holds two types; empty where there are more owners than such parts.
SliceRange slice_of(std::int64_t first, std::int64_t end, int owner, int owners);

/// How far each owner has come: the version of its slice of every unit. The words lie in the owners' common memory.
class NodeSlices {
public:
  /// By all owners; their memory holds so many units. `awaited`: what one owner waits for of another, in words.
  NodeSlices(NodeMemory& memory, int units, std::string awaited = "its slices of the parameters");

  int owner() const { return owner_; }
  int owners() const { return owners_; }
  SliceRange own(std::int64_t first, std::int64_t end) const;
  /// This rank's slice of the unit has this version: what was written before is seen by whoever waits for it.
  void publish(int unit, std::uint32_t version);
  std::uint32_t published(int unit) const;  // by this rank
  std::uint32_t published_by(int owner, int unit) const;
  /// Returns when every owner's slice has this version or a later one; or this owner's.
  void wait_for(int unit, std::uint32_t version);
  void wait_for_owner(int owner, int unit, std::uint32_t version);
  /// Returns when all owners have come here as often as this one.
  void meet();

  /// What the words take.
  static std::size_t bytes(int units, int owners);

private:
  NodeMemory& memory_;
  int units_, owner_, owners_;
  std::string awaited_;
  std::shared_ptr<std::byte> words_;  // (owners, units + 1), the last one counts meetings; rows in lines of their own
};

}  // namespace distzo2
