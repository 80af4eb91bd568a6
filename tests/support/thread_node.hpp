// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/chunk_table.hpp"
#include "core/node_memory.hpp"
#include "core/round_up.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

namespace distzo2 {

/// Memory that threads share as ranks of a node do.
class ThreadNode {
public:
  explicit ThreadNode(int owners, std::size_t bytes)
      : owners_(owners), bytes_(bytes), memory_(new (std::align_val_t(page_bytes)) std::byte[bytes](), Release()) {}

  class Rank final : public NodeMemory {
  public:
    Rank(ThreadNode& node, int owner) : node_(node), owner_(owner) {}
    std::shared_ptr<std::byte> allocate(const std::string&, std::size_t bytes) override {
      const std::size_t at = used_;
      used_ += round_up(bytes, page_bytes);
      if (used_ > node_.bytes_) throw std::runtime_error("the node's memory is too small");
      return {node_.memory_, node_.memory_.get() + at};
    }
    int owner() const override { return owner_; }
    int owners() const override { return node_.owners_; }
    void still_waiting(int owner, double seconds, const std::string& awaited) override {
      if (waiting) waiting(awaited);
      if (seconds > most_seconds)
        throw std::runtime_error("owner " + std::to_string(owner) + ": waited too long for " + awaited);
    }
    double most_seconds = 60;
    std::function<void(const std::string& awaited)> waiting;  // told as it waits
    std::size_t used() const { return used_; }

  private:
    ThreadNode& node_;
    int owner_;
    std::size_t used_ = 0;
  };

private:
  struct Release {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t(page_bytes)); }
  };
  int owners_;
  std::size_t bytes_;
  std::shared_ptr<std::byte> memory_;
};

}  // namespace distzo2
