// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/trajectory_record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace distzo2 {

/// Indices hashed together: chunks start at multiples of this, and the last of a run of tensors may be short.
constexpr std::size_t digest_chunk_size = 4096;

/// XXH3-64, seeded by `first`, of the little-endian fp32 values of global indices first .. first + size. `first` is a
/// multiple of the chunk size, and there are at most that many values: otherwise an Error (internal).
std::uint64_t digest_chunk(std::uint64_t first, std::span<const float> values);

/// Of all in these records that becomes part of an element.
std::uint64_t digest_updates(std::span<const StepRecord> records);

}  // namespace distzo2
