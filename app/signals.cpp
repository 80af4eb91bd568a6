// SPDX-License-Identifier: BSD-3-Clause
#include "app/signals.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace distzo2 {
namespace {

// A handler can reach nothing but a global of this type.
volatile std::sig_atomic_t received_signal = 0;
std::atomic<std::int64_t> received_at_ns{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool ends(int number) {
  return number == SIGINT || number == SIGTERM;
}

extern "C" void note_signal(int number) {
  // A batch system sends SIGUSR1 first and SIGTERM later, a terminal that closes SIGHUP and SIGTERM: only a second
  // request to end is one to end at once.
  if (ends(received_signal) && ends(number)) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  if (ends(received_signal)) return;
  received_at_ns = clock_ns();
  received_signal = number;
}

/// Signals are handled on a stack of their own: oneDNN's generated code keeps data below the stack pointer, which a
/// signal's frame would overwrite. Only this thread, the main one, takes them.
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
  for (const int number : stop_signals) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

}  // namespace

void prepare_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void admit_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : stop_signals) sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

StopSignals::StopSignals() {
  received_signal = 0;
  install(note_signal);
  admit_stop_signals();
}
StopSignals::~StopSignals() {
  install(SIG_DFL);
}
int StopSignals::received() const {
  return received_signal;
}
double StopSignals::seconds_since() const {
  return 1e-9 * static_cast<double>(clock_ns() - received_at_ns);
}

}  // namespace distzo2
