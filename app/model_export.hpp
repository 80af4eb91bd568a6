// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/engine.hpp"

#include <filesystem>

namespace distzo2 {

/// theta, pending records applied, as a Hugging Face folder in the storage precision, with `base`'s configuration and
/// tokenizer files; written beside and renamed. An existing folder is replaced.
void export_model(const Engine& engine, const std::filesystem::path& base, const std::filesystem::path& folder);

}  // namespace distzo2
