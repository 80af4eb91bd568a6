// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/node_memory.hpp"
#include "parallel/communicator.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace distzo2 {

/// One piece of memory for all ranks of a node: a window of the MPI library, or a file that they map.
class SharedWindow final : public NodeMemory {
public:
  /// By all ranks of `node`, which share a memory: `bytes` in all, in a file of `folder` where one is given. `rank` is
  /// this one's for people, in the world. Throws Error (usage), on all of them alike, where the file system that it
  /// would lie in has less free: beyond that, ranks would be killed by a signal as they write.
  SharedWindow(const Communicator& node, std::size_t bytes, int rank, const std::string& folder = {});
  /// By all of them, but for one that fails: that one tells the others and does not wait for them.
  ~SharedWindow() override;
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  /// By all of them. Its pages are taken here, each owner's share by that one; throws as the constructor does.
  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override;
  int owner() const override { return node_.rank(); }
  int owners() const override { return node_.size(); }
  void still_waiting(int owner, double seconds, const std::string& awaited) override;
  /// How long one rank waits for another; 0, as at the start: for ever.
  void set_timeout(double seconds) { timeout_s_.store(seconds, std::memory_order_relaxed); }

  /// The folder that it lies in, or empty.
  const std::string& place() const { return place_; }

private:
  struct Window;  // of the MPI library
  void map_file(const std::string& folder);
  void make_window();
  void take(std::byte* piece, std::size_t bytes);
  void throw_if_any(const std::string& problem);
  std::uint32_t& ended(int owner) const;

  Communicator node_;
  std::vector<std::uint64_t> names_;  // of its ranks
  std::atomic<double> timeout_s_{0};
  std::string place_;
  std::unique_ptr<Window> window_;  // null where `data_` is this object's own mapping
  std::byte* data_ = nullptr;       // first a word an owner, set where it fails; then what is allocated
  std::size_t bytes_ = 0, used_ = 0;
  int exceptions_ = 0;  // under way as this object was made
};

/// Takes the memory of a mapping's pages; false where there is none left for them, which would be a signal at a write.
/// Linux before 5.14 cannot, and takes them as they are written.
bool take_pages(void* address, std::size_t bytes);

/// The folder of the file that backs the mapping at this address, or "" for memory of no file.
std::string backing_folder(const void* address);

}  // namespace distzo2
