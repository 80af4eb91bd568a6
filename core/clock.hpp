// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace distzo2 {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace distzo2
