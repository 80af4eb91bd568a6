// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/model_config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// The dimensions of published models by name ("opt-13b", "llama-3-8b", "qwen3-4b"), and one small enough for a try of
/// each family ("opt-tiny"): what a model with random weights is made of, without a folder.
const std::vector<std::string>& model_shape_names();

/// The configuration of a named shape, its head tied as in the published model or as asked for. Throws Error (usage)
/// for a name that is not in the list.
ModelConfig model_shape(std::string_view name, std::optional<bool> tied_head = std::nullopt);

/// "opt", "llama", "qwen3".
const char* name_of(FamilyKind family);

}  // namespace distzo2
