// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/model_config.hpp"

namespace distzo2 {

/// A model folder's config.json: OPT, LLaMA or dense Qwen3, its dimensions bounded and checked against each other.
/// Another family, and any setting that would change the mathematics and is not implemented, is Error(file) naming
/// file, key, value and what is accepted.
ModelConfig read_model_config(const std::filesystem::path& folder);

/// The same for a value already read; `file` stands in messages.
ModelConfig parse_model_config(const nlohmann::json& config, const std::string& file);

/// Keys of a model folder's config.json that are neither read nor known to be without effect, sorted: for a note.
std::vector<std::string> unknown_config_keys(const std::filesystem::path& folder);

}  // namespace distzo2
