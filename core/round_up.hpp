// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace distzo2 {

/// How many pieces of `step` it takes to hold n; n not negative, step positive.
template <class T>
constexpr T pieces_of(T n, T step) {
  return (n + step - 1) / step;
}

/// The least multiple of `step` that is not below n.
template <class T>
constexpr T round_up(T n, T step) {
  return pieces_of(n, step) * step;
}

}  // namespace distzo2
