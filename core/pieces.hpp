// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace distzo2 {

/// Calls work(i) for every i in [0, pieces) on as many threads as the process was given (those of the host instance),
/// in no fixed order: for loading, outside the step loop. What the lowest failing piece threw is thrown again.
void for_each_piece(std::size_t pieces, const std::function<void(std::size_t)>& work);

}  // namespace distzo2
