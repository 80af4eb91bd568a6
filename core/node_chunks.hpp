// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/node_slices.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace distzo2 {

/// Of a disk that the ranks of a node share and the first of them writes: where each chunk lies, and its version.
class NodeChunks {
public:
  /// By all owners. `disk`: where it is, for people.
  NodeChunks(NodeMemory& memory, int chunks, const std::string& disk)
      : chunks_(chunks), words_(memory, words(chunks), "what it writes to " + disk) {}

  /// By the first owner.
  void publish(int chunk, std::uint32_t version, std::uint32_t place) {
    words_.publish(chunks_ + chunk, place);  // who waits for the version finds the place
    words_.publish(chunk, version + 1);
  }
  /// None where it was never published.
  std::optional<std::uint32_t> version(int chunk) const {
    const std::uint32_t next = words_.published_by(0, chunk);
    return next == 0 ? std::nullopt : std::optional(next - 1);
  }
  /// Where it lies once it has this version or a later one.
  std::uint32_t await_place(int chunk, std::uint32_t version) {
    words_.wait_for_owner(0, chunk, version + 1);
    return words_.published_by(0, chunks_ + chunk);
  }
  /// Returns when all owners have come here as often as this one.
  void meet() { words_.meet(); }

  /// What it takes of the memory.
  static std::size_t bytes(int chunks, int owners) { return NodeSlices::bytes(words(chunks), owners); }

private:
  static constexpr int words(int chunks) { return 2 * chunks; }
  int chunks_;
  NodeSlices words_;  // a chunk's version and one more, 0 where there is none; then the places
};

}  // namespace distzo2
