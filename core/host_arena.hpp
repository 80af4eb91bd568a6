// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace distzo2 {

/// Where host memory comes from: plain, pinned on a CUDA build, or a window shared by the ranks of a node.
struct HostArena {
  virtual ~HostArena() = default;
  /// Zeroed, aligned to 4096 bytes, labelled for Kokkos Tools.
  virtual std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) = 0;
};
std::unique_ptr<HostArena> make_kokkos_arena();

}  // namespace distzo2
