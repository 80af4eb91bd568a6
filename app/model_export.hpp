// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/engine.hpp"

#include <cstdint>
#include <filesystem>

namespace distzo2 {

enum class IfExists : std::uint8_t { replace, refuse };

/// theta, pending records applied, as a Hugging Face folder in the storage precision, with `base`'s configuration and
/// tokenizer files; written beside and renamed. An existing folder is replaced, or refused.
void export_model(const Engine& engine, const std::filesystem::path& base, const std::filesystem::path& folder,
                  IfExists if_exists);

}  // namespace distzo2
