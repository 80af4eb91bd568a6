// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Whether what this process prints comes to a terminal, where a line can be drawn over. A launcher of ranks may give
/// each of them a terminal of its own, and pass on what they print to a file: then it is that file that counts.
bool prints_to_terminal();

}  // namespace distzo2
