// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace distzo2 {

/// A tokenised example: a prompt that its candidates go on from, and which of them is right.
struct Example {
  std::vector<std::int32_t> prompt;                   // with the leading token, where there is one; never empty
  std::vector<std::vector<std::int32_t>> candidates;  // the tokens after the prompt; none is empty
  int label = 0;                                      // index of the right candidate
};

}  // namespace distzo2
