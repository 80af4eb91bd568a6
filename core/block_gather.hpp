// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace distzo2 {

/// Brings together what the ranks of a node have uploaded of a unit (design section 5). All of them ask for the same
/// gathers in the same order, each from one thread: its lane `gather`.
struct BlockGather {
  BlockGather() = default;
  BlockGather(const BlockGather&) = delete;
  BlockGather& operator=(const BlockGather&) = delete;
  virtual ~BlockGather() = default;

  /// Of equal parts that lie one after another at `image`, in the memory that computes, the i-th is owner i's: after it
  /// all owners have all of them. On a device it is queued on the lane `gather`, or done at once.
  virtual void gather(std::byte* image, std::size_t part) = 0;

  /// Throws Error (rank failed) where a gather that was queued has failed since.
  virtual void check() {}

  /// This rank is about to end: it waits for no other any more.
  virtual void end_waits() {}
};

}  // namespace distzo2
