// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/node_slices.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace distzo2 {

/// Adds up what each rank of a node found in its part of a model.
class NodeSums {
public:
  /// By all owners.
  explicit NodeSums(NodeMemory& memory)
      : owners_(memory.owners()), words_(memory, 2 * values, "the digest of its part of the parameters") {}

  /// By all owners: the sum of their parts mod 2^64. None, for all of them, where their `basis` is not the same: then
  /// their parts are not of one whole.
  std::optional<std::uint64_t> add(std::uint64_t part, std::uint64_t basis) {
    publish(0, part);
    publish(1, basis);
    words_.meet();
    std::uint64_t sum = 0;
    bool same = true;
    for (int owner = 0; owner < owners_; ++owner) {
      sum += of(owner, 0);
      same = same && of(owner, 1) == of(0, 1);
    }
    words_.meet();  // nobody publishes the next part before all have seen this one
    return same ? std::optional(sum) : std::nullopt;
  }

  /// What it takes of the memory.
  static std::size_t bytes(int owners) { return NodeSlices::bytes(2 * values, owners); }

private:
  static constexpr int values = 2;
  void publish(int value, std::uint64_t x) {
    words_.publish(2 * value, static_cast<std::uint32_t>(x));
    words_.publish(2 * value + 1, static_cast<std::uint32_t>(x >> 32));
  }
  std::uint64_t of(int owner, int value) const {
    return words_.published_by(owner, 2 * value) | std::uint64_t{words_.published_by(owner, 2 * value + 1)} << 32;
  }
  int owners_;
  NodeSlices words_;  // each value in two
};

}  // namespace distzo2
