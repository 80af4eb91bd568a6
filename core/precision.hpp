// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace distzo2 {

/// S of the design: the type in which matrices are stored (one-dimensional tensors are always fp32).
enum class Storage : std::uint8_t { fp32, bf16, fp16 };

/// C of the design: the type of the two inputs of a matrix product; accumulation is always fp32.
enum class Compute : std::uint8_t { fp32, bf16, fp16 };

/// How an updated parameter is rounded to 16-bit storage.
enum class Rounding : std::uint8_t { stochastic, nearest };

/// The distribution of z.
enum class DirectionKind : std::uint8_t { gaussian, rademacher };

/// central: (L+ - L-) / 2 eps; forward: (L+ - L0) / eps with one shared L0.
enum class Difference : std::uint8_t { central, forward };

/// language_model: mean over label tokens; classification: cross-entropy over the candidates' mean token
/// log-probability.
enum class Objective : std::uint8_t { language_model, classification };

constexpr std::size_t bytes_of(Storage s) {
  return s == Storage::fp32 ? 4 : 2;
}
constexpr std::size_t bytes_of(Compute c) {
  return c == Compute::fp32 ? 4 : 2;
}
// As decks and files name them.
constexpr const char* name_of(Storage s) {
  return s == Storage::fp32 ? "fp32" : s == Storage::bf16 ? "bf16" : "fp16";
}
constexpr const char* name_of(Compute c) {
  return c == Compute::fp32 ? "fp32" : c == Compute::bf16 ? "bf16" : "fp16";
}
constexpr const char* name_of(Rounding r) {
  return r == Rounding::stochastic ? "stochastic" : "nearest";
}
constexpr const char* name_of(DirectionKind k) {
  return k == DirectionKind::gaussian ? "gaussian" : "rademacher";
}
constexpr const char* name_of(Difference d) {
  return d == Difference::central ? "central" : "forward";
}
constexpr const char* name_of(Objective o) {
  return o == Objective::language_model ? "language model" : "classification";
}

}  // namespace distzo2
