// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

/// The input number `seed` near `from`: a few bits, bytes, numbers, lengths or pieces changed, cut out, repeated, or
/// taken from one of `others`. The same for the same arguments.
std::string changed(const std::string& from, const std::vector<std::string>& others, std::uint64_t seed);

}  // namespace distzo2
