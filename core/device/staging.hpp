// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/space.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace distzo2 {

/// Memory that computes, of the size that was ever asked for. Growing waits for the device: it happens before the first
/// step, where the largest batch is known, or while larger and larger ones come.
template <class Space>
class DeviceBuffer {
public:
  explicit DeviceBuffer(std::string label) : label_(std::move(label)) {}
  std::byte* at_least(const typename Space::Exec& exec, std::size_t bytes) {
    if (bytes > bytes_) {
      Space::wait(exec);
      memory_.reset();  // the smaller one goes before the larger one comes
      memory_ = Space::allocate(label_, bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }
  std::size_t bytes() const { return bytes_; }

private:
  std::string label_;
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
};

/// Small tables on their way to the device: `put` copies them to host memory that the device copies from, and queues
/// that copy. What was put stays there until `restart`, and kernels may read it until `waited`. Grows by further
/// pieces, so that no pointer moves.
template <class Space>
class Staging {
public:
  explicit Staging(std::size_t bytes) { add_piece(bytes); }

  /// A kernel that reads what was put is queued; the caller has waited for all that is queued.
  void queued() { read_ = false; }
  void waited() { read_ = true; }

  /// Forgets all that was put, and waits for the kernels that read it where nobody has.
  void restart(const typename Space::Exec& exec) {
    if (!read_) Space::wait(exec);
    if (pieces_.size() > 1) {  // one that holds as much as all of them did
      const std::size_t total = bytes();
      pieces_.clear();
      add_piece(total);
    }
    used_ = 0;
  }

  template <class T>
  const T* put(const typename Space::Exec& exec, std::span<const T> values) {
    const std::size_t bytes = values.size_bytes();
    queued();
    if (used_ + bytes > pieces_.back().bytes) add_piece(std::max(pieces_.back().bytes, bytes));
    const Piece& piece = pieces_.back();
    std::byte* const host = piece.host.get() + used_;
    std::byte* const device = piece.device.get() + used_;
    if (bytes > 0) {
      std::memcpy(host, values.data(), bytes);
      Space::copy(exec, device, host, bytes);
    }
    used_ += round_up(bytes, alignment);
    return reinterpret_cast<const T*>(device);
  }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const Piece& p : pieces_) total += p.bytes;
    return total;
  }

private:
  static constexpr std::size_t alignment = 64;
  struct Piece {
    std::shared_ptr<std::byte> host, device;
    std::size_t bytes = 0;
  };
  void add_piece(std::size_t wanted) {
    const std::size_t bytes = round_up(wanted, alignment);
    pieces_.push_back({Space::allocate_host("distzo2::device::tables_on_host", bytes),
                       Space::allocate("distzo2::device::tables", bytes), bytes});
    used_ = 0;
  }

  std::vector<Piece> pieces_;
  std::size_t used_ = 0;  // of the last piece
  bool read_ = true;
};

}  // namespace distzo2
