// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// Opens /dev/null as each of stdin, stdout and stderr that is closed, so that no file of a run gets its number and
/// with it what is printed. Call it before anything is opened.
void open_standard_streams();

/// Whether stdout is a pipe whose reader is gone, as that of `| head` soon is.
bool reader_is_gone();

}  // namespace distzo2
