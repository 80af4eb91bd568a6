// SPDX-License-Identifier: BSD-3-Clause
#include "core/host_arena.hpp"

#include "core/chunk_table.hpp"
#include "core/exec.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace distzo2 {
namespace {

class KokkosArena final : public HostArena {
public:
  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
    const std::size_t size = bytes + page_bytes;
    const Kokkos::View<std::byte*, Kokkos::HostSpace> memory(
        Kokkos::view_alloc(HostExec(), label, Kokkos::WithoutInitializing), size);
    // Before the first touch: large pages cost the products and the disk's transfers fewer misses.
    constexpr std::size_t large_page = std::size_t{2} << 20;
    if (size >= 2 * large_page) {
      const auto first = round_up(reinterpret_cast<std::uintptr_t>(memory.data()), large_page);
      const auto end = reinterpret_cast<std::uintptr_t>(memory.data()) + size;
      // Only a wish: where there are none, small ones serve.
      static_cast<void>(::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
    }
    constexpr std::size_t piece = std::size_t{1} << 20;
    for_each_piece(pieces_of(size, piece), [&](std::size_t i) {  // a view would set byte after byte
      std::memset(memory.data() + i * piece, 0, std::min(piece, size - i * piece));
    });
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte* aligned = memory.data() + (page_bytes - address % page_bytes) % page_bytes;
    return {aligned, [memory](std::byte*) {}};  // the view lives as long as the pointer
  }
};

}  // namespace

std::unique_ptr<HostArena> make_kokkos_arena() {
  return std::make_unique<KokkosArena>();
}

}  // namespace distzo2
