// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "app/loading.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

/// What a user must know of the data, though a run can do with it: too few examples or only one label, evaluation on
/// what is trained on, cells in quotes, examples shortened, labels that merge with the prompt's end.
std::vector<std::string> notes_of(const LoadedData& data, std::uint32_t batch);

}  // namespace distzo2
