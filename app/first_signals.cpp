// SPDX-License-Identifier: BSD-3-Clause
// Compiled for any x86-64 processor and linked into the program itself: it runs before anything else there.
#include "app/signals.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace {

/// Stop signals wait from before the constructors of libraries on: a thread that one of them starts (OpenBLAS has as
/// many as there are cores) would else be handed a signal that the main thread does not take yet, and end the program.
/// The bare system call, as the library's functions may be a sanitizer's, which is not set up yet.
void block_stop_signals(int, char**, char**) {
  std::uint64_t set = 0;  // as the kernel has it: a bit a signal
  for (const int number : distzo2::stop_signals) set |= std::uint64_t{1} << (number - 1);
  static_cast<void>(::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, nullptr, sizeof set));
}

[[gnu::section(".preinit_array"), gnu::used]] void (*block_stop_signals_entry)(int, char**,
                                                                               char**) = block_stop_signals;

}  // namespace
