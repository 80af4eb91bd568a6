// SPDX-License-Identifier: BSD-3-Clause
#include "app/signals.hpp"

#include <array>
#include <csignal>

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

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NODEFER;
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
