// SPDX-License-Identifier: BSD-3-Clause
#include "core/cuda/pinned_arena.hpp"

#include "core/chunk_table.hpp"
#include "core/cuda/check.hpp"
#include "core/error.hpp"
#include "core/round_up.hpp"

namespace distzo2 {
namespace {

class PinnedArena final : public HostArena {
public:
  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
    // Whole pages, so that no page is registered twice.
    const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), page_bytes);
    std::shared_ptr<std::byte> memory = plain_->allocate(label, size);
    const cudaError_t code = cudaHostRegister(memory.get(), size, cudaHostRegisterPortable);
    if (code == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      throw Error(ExitCode::usage, "memory/host budget: " + std::to_string(size >> 20) + " MiB of host memory (" +
                                       label +
                                       ") cannot be pinned for the device; a smaller budget keeps more on disk, and "
                                       "`ulimit -l` or the container's limit on locked memory may bound it");
    }
    check_cuda(code, "cudaHostRegister");
    std::byte* const address = memory.get();
    return {address, [memory = std::move(memory)](std::byte* p) { cudaHostUnregister(p); }};
  }

private:
  std::unique_ptr<HostArena> plain_ = make_kokkos_arena();
};

}  // namespace

std::unique_ptr<HostArena> make_pinned_arena() {
  return std::make_unique<PinnedArena>();
}

}  // namespace distzo2
