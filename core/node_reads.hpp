// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/block_storage.hpp"
#include "core/node_slices.hpp"
#include "core/placement.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace distzo2 {

/// A disk as the pipelines of a node's ranks see it: owner 0 reads each unit, once for all, and the others take it from
/// the memory that they share. All owners read the same units in the same order, each from one thread; what a rank
/// writes goes to its own `disk`, which on owner 0 is the disk itself.
class NodeReads final : public BlockStorage {
public:
  /// By all owners.
  NodeReads(NodeMemory& memory, const Placement& placement, BlockStorage& disk);

  void read(int begin, int end, std::byte* image) override;
  void read_part(int chunk, std::size_t offset, std::span<std::byte> to) override;
  void write(int begin, int end, const std::byte* image, std::uint32_t version) override;
  bool holds(int chunk) const override { return disk_.holds(chunk); }
  std::uint32_t version(int chunk) const override { return disk_.version(chunk); }
  std::string name() const override { return disk_.name(); }

  /// This rank is about to end: it waits for no other any more, and a read that does throws.
  void end_waits() { waits_.ended.store(true, std::memory_order_relaxed); }

  /// What units on their way take of the memory, and what they take with all words.
  static std::size_t slot_bytes(const Placement& placement);
  static std::size_t bytes(const Placement& placement, int owners);

private:
  struct Waits final : NodeMemory {
    Waits(NodeMemory& m, const std::string& disk)
        : memory(m),
          of_first("the unit that it reads from " + disk),
          of_others("its word that it has taken what was read from " + disk) {}
    std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
      return memory.allocate(label, bytes);
    }
    int owner() const override { return memory.owner(); }
    int owners() const override { return memory.owners(); }
    void still_waiting(int owner, double seconds, const std::string& awaited) override;
    NodeMemory& memory;
    std::string of_first, of_others;  // what is waited for: said without an allocation
    std::atomic<bool> ended{false};
  };

  const Placement& placement_;
  BlockStorage& disk_;
  Waits waits_;
  NodeSlices words_;  // of each owner: how many units it has put there, and how many taken
  std::size_t slot_bytes_;
  std::shared_ptr<std::byte> memory_;
  std::uint32_t reads_ = 0;
};

}  // namespace distzo2
