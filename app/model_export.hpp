// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/parameter_store.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace distzo2 {

enum class IfExists : std::uint8_t { replace, refuse };

/// theta, pending records applied, as a Hugging Face folder in the storage precision, with `base`'s configuration and
/// tokenizer files; written beside and renamed. An existing folder is replaced, or refused. `check` is given theta's
/// digest before the folder appears, and may throw. Takes a few chunks of memory beside the store's.
void export_model(const ParameterStore& store, const std::filesystem::path& base, const std::filesystem::path& folder,
                  IfExists if_exists, const std::function<void(std::uint64_t)>& check = nullptr);

/// Whether rounding to fp16, to nearest, makes a finite value infinite.
bool overflows_fp16(float value);

/// Why theta as it is cannot be exported: a value of a one-dimensional tensor, kept in fp32, that fp16 cannot hold.
/// Empty where it can.
std::string export_problem(const ParameterStore& store);

}  // namespace distzo2
