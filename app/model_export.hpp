// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/engine.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace distzo2 {

enum class IfExists : std::uint8_t { replace, refuse };

/// theta, pending records applied, as a Hugging Face folder in the storage precision, with `base`'s configuration and
/// tokenizer files; written beside and renamed. An existing folder is replaced, or refused.
void export_model(const Engine& engine, const std::filesystem::path& base, const std::filesystem::path& folder,
                  IfExists if_exists);

/// Whether rounding to fp16, to nearest, makes a finite value infinite.
bool overflows_fp16(float value);

/// Why theta as it is cannot be exported: a value of a one-dimensional tensor, kept in fp32, that fp16 cannot hold.
/// Empty where it can.
std::string export_problem(const Engine& engine);

}  // namespace distzo2
