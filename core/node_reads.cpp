// SPDX-License-Identifier: BSD-3-Clause
#include "core/node_reads.hpp"

#include "core/error.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cstring>

namespace distzo2 {
namespace {

/// Units on their way: one is filled while the one before is taken.
constexpr std::uint32_t slots = 2;
constexpr int loaded = 0, taken = 1, words = 2;

}  // namespace

std::size_t NodeReads::slot_bytes(const Placement& placement) {
  const bool any = std::ranges::any_of(placement.units, [](const Unit& u) { return u.tier == Tier::disk; });
  return any ? slots * round_up(std::max(placement.buffer_bytes, placement.vector_buffer_bytes), page_bytes) : 0;
}

std::size_t NodeReads::bytes(const Placement& placement, int owners) {
  const std::size_t units = slot_bytes(placement);
  return units == 0 ? 0 : units + round_up(NodeSlices::bytes(words, owners), page_bytes);
}

NodeReads::NodeReads(NodeMemory& memory, const Placement& placement, BlockStorage& disk)
    : placement_(placement),
      disk_(disk),
      waits_(memory, disk.name()),
      words_(waits_, words),
      slot_bytes_(slot_bytes(placement) / slots),
      memory_(memory.allocate("distzo2::node_reads", slots * slot_bytes_)) {}

void NodeReads::Waits::still_waiting(int owner, double seconds, const std::string&) {
  if (ended.load(std::memory_order_relaxed))
    throw Error(ExitCode::internal, "a read is given up: its rank is about to end");
  memory.still_waiting(owner, seconds, owner == 0 ? of_first : of_others);
}

// Why nobody waits for ever. The n-th read is of the same unit on all ranks: a pipeline issues reads as its rank opens
// and closes units, never by time, and all ranks make the same calls. So the first rank waits, before its read n, for
// copies of read n - 2 alone, and another rank's read n for that of the first. Whoever waits, waits for a rank that is
// behind it in this order; the one that is furthest behind has what it needs: what it is to read has been put into its
// slot, or it is the first rank and what it would overwrite has been taken, as the others, further on, have needed it.
// Meetings of all ranks (NodeSlices::meet) stand between passes and after the look-up of a pass's rows, where each rank
// comes with what it has got so far: a rank that is missing there is behind, and is served as above.
void NodeReads::read(int begin, int end, std::byte* image) {
  const Chunk &first = placement_.chunks.chunks[static_cast<std::size_t>(begin)],
              &last = placement_.chunks.chunks[static_cast<std::size_t>(end - 1)];
  const std::size_t bytes = last.offset + last.bytes - first.offset;
  const std::uint32_t number = reads_++;  // may come round: what is compared is never far apart
  std::byte* const slot = memory_.get() + number % slots * slot_bytes_;
  if (waits_.owner() != 0) {
    words_.wait_for_owner(0, loaded, number + 1);
    std::memcpy(image, slot, bytes);
    words_.publish(taken, number + 1);
    return;
  }
  disk_.read(begin, end, image);
  for (int owner = 1; owner < waits_.owners(); ++owner) words_.wait_for_owner(owner, taken, number + 1 - slots);
  std::memcpy(slot, image, bytes);
  words_.publish(loaded, number + 1);
}

void NodeReads::read_part(int chunk, std::size_t offset, std::span<std::byte> to) {
  disk_.read_part(chunk, offset, to);
}

void NodeReads::write(int begin, int end, const std::byte* image, std::uint32_t version) {
  disk_.write(begin, end, image, version);
}

}  // namespace distzo2
