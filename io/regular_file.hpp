// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

namespace distzo2 {

/// Throws Error (file) unless the path leads to a regular file, saying what stands there: to open a named pipe may wait
/// for ever, a device may have no end, and a folder can be opened but not read.
void expect_regular_file(const std::filesystem::path& path);

}  // namespace distzo2
