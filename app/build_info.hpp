// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace distzo2 {

/// The commit this program was built from, ending in -dirty where the tree was changed; "unknown" outside git.
std::string build_git_hash();

/// Whether the program computes on a device with a memory of its own.
bool built_for_device();

/// What the program is and is built from, a line each: version and commit, compiler, Kokkos with its back ends,
/// libraries.
std::string build_summary();

}  // namespace distzo2
