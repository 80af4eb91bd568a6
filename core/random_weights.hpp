// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/tensor_table.hpp"

#include <cstdint>
#include <span>

namespace distzo2 {

/// Standard deviation of random matrices, that of OPT's and LLaMA's initialisation.
constexpr float random_weight_deviation = 0.02F;

/// Elements [offset, offset + out.size()) of a tensor of a random model: random_weight_deviation times the normal of
/// stream 3 at the element's global index (design section 2; t = 0, k = 0); of the one-dimensional tensors biases 0 and
/// norms' weights 1. A pure function of seed and index: any thread makes any part of any model.
void random_values(const Tensor& tensor, std::uint64_t seed, std::int64_t offset, std::span<float> out);

}  // namespace distzo2
