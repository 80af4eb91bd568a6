// SPDX-License-Identifier: BSD-3-Clause
#include "app/signals.hpp"

#include <array>
#include <csignal>
#include <cstddef>

namespace distzo2 {
namespace {

// A handler can reach nothing but a global of this type.
volatile std::sig_atomic_t received_signal = 0;

constexpr std::array<int, 3> stop_signals{SIGINT, SIGTERM, SIGUSR1};

extern "C" void note_signal(int number) {
  // A batch system sends SIGUSR1 first and SIGTERM later: only a second request to end is one to end at once.
  if ((received_signal == SIGINT || received_signal == SIGTERM) && number != SIGUSR1) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  received_signal = number;
}

/// Signals are handled on a stack of their own: oneDNN's generated code keeps data below the stack pointer, which a
/// signal's frame would overwrite. The kernel hands a process's signals to this thread, the main one, first.
constexpr std::size_t signal_stack_bytes = 256 * 1024;
alignas(64) std::array<std::byte, signal_stack_bytes> signal_stack;

void install(void (*handler)(int)) {
  stack_t stack = {};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER | SA_ONSTACK;
  for (const int number : stop_signals) sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  received_signal = 0;
  install(note_signal);
}
StopSignals::~StopSignals() {
  install(SIG_DFL);
}
int StopSignals::received() const {
  return received_signal;
}

}  // namespace distzo2
