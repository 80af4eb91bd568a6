// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "core/model_config.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

/// Throws Error (file) naming the key where a config.json sets one that would change the computation to another than
/// the family's as it is implemented here.
void refuse_other_arithmetic(const JsonObject& config, FamilyKind family);

/// Keys of a config.json that nothing here reads or knows to be without effect on the forward pass, sorted.
std::vector<std::string> unknown_keys(const JsonObject& config);

}  // namespace distzo2
