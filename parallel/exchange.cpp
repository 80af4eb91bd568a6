// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/exchange.hpp"

namespace distzo2 {

void exchange(StepLosses&) {}  // one rank: its share is the whole step

}  // namespace distzo2
