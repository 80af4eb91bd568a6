// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "parallel/communicator.hpp"

namespace distzo2 {

/// The ranks that this test program was started on; every test runs on all of them.
Communicator& test_world();

}  // namespace distzo2
