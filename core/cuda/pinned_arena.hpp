// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/host_arena.hpp"

namespace distzo2 {

/// The plain arena's memory (large pages, first touched by all threads), registered with CUDA for as long as it lives.
std::unique_ptr<HostArena> make_pinned_arena();

}  // namespace distzo2
