// SPDX-License-Identifier: BSD-3-Clause
#include "core/node_slices.hpp"

#include "core/round_up.hpp"
#include "core/tensor_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace distzo2 {
namespace {

// Words that several processes look at.
using Word = std::atomic_ref<std::uint32_t>;
static_assert(Word::is_always_lock_free);

constexpr std::size_t line_bytes = 64;

/// A wait is mostly a matter of microseconds: owners have equal slices. Ranks may outnumber cores: then the others need
/// this one's.
constexpr int looks_before_yield = 100, looks_before_sleep = 300;
constexpr auto shortest_sleep = std::chrono::microseconds(10);
constexpr auto longest_sleep = std::chrono::microseconds(200);

std::size_t row_bytes(int units) {
  return round_up(sizeof(std::uint32_t) * (static_cast<std::size_t>(units) + 1), line_bytes);
}

std::uint32_t& word_at(std::byte* words, int units, int owner, int word) {
  return reinterpret_cast<std::uint32_t*>(words + static_cast<std::size_t>(owner) * row_bytes(units))[word];
}

}  // namespace

SliceRange slice_of(std::int64_t first, std::int64_t end, int owner, int owners) {
  const auto cut = [&](std::int64_t i) {
    if (i == 0) return first;
    const std::int64_t at = first + (end - first) / owners * i + (end - first) % owners * i / owners;
    return std::clamp(round_up(at, index_alignment), first, end);
  };
  return {cut(owner), owner + 1 == owners ? end : cut(owner + 1)};
}

std::size_t NodeSlices::bytes(int units, int owners) {
  return static_cast<std::size_t>(owners) * row_bytes(units);
}

NodeSlices::NodeSlices(NodeMemory& memory, int units, std::string awaited)
    : memory_(memory),
      units_(units),
      owner_(memory.owner()),
      owners_(memory.owners()),
      awaited_(std::move(awaited)),
      words_(memory.allocate("distzo2::slice_versions", bytes(units, owners_))) {}

SliceRange NodeSlices::own(std::int64_t first, std::int64_t end) const {
  return slice_of(first, end, owner_, owners_);
}

void NodeSlices::publish(int unit, std::uint32_t version) {
  Word(word_at(words_.get(), units_, owner_, unit)).store(version, std::memory_order_release);
}

std::uint32_t NodeSlices::published(int unit) const {
  return Word(word_at(words_.get(), units_, owner_, unit)).load(std::memory_order_relaxed);
}

std::uint32_t NodeSlices::published_by(int owner, int unit) const {
  return Word(word_at(words_.get(), units_, owner, unit)).load(std::memory_order_acquire);
}

void NodeSlices::wait_for(int unit, std::uint32_t version) {
  for (int owner = 0; owner < owners_; ++owner) wait_for_owner(owner, unit, version);
}

void NodeSlices::meet() {
  const std::uint32_t count = published(units_) + 1;
  publish(units_, count);
  wait_for(units_, count);
}

void NodeSlices::wait_for_owner(int owner, int unit, std::uint32_t version) {
  std::uint32_t& at = word_at(words_.get(), units_, owner, unit);
  // By their difference: counts come round.
  const auto behind = [&] { return static_cast<std::int32_t>(version - Word(at).load(std::memory_order_acquire)) > 0; };
  auto sleep = shortest_sleep;
  std::chrono::microseconds slept{0};  // a count of naps, not a clock: a job may be suspended as a whole
  for (int looks = 0; behind(); ++looks) {
    if (looks < looks_before_yield) continue;
    if (looks < looks_before_sleep) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    slept += sleep;
    sleep = std::min(longest_sleep, 2 * sleep);
    memory_.still_waiting(owner, std::chrono::duration<double>(slept).count(), awaited_);
  }
}

}  // namespace distzo2
