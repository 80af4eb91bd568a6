// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/four.hpp"
#include "core/device/space.hpp"
#include "core/workspace.hpp"

#include <cmath>
#include <cstdint>

namespace distzo2 {

// What goes over activations a row at a time, a team of threads a row: the device forms of core/kernels' norm, rope and
// elementwise, with their meaning but not their order of summation.

namespace detail {

/// Calls f(team, evaluation, token, part) with a team for each of `parts` parts of each row.
template <class Space, class F>
void for_each_row_part(const typename Space::Exec& exec, const char* label, const Rows& shape, int parts, const F& f) {
  using Policy = Kokkos::TeamPolicy<typename Space::Exec>;
  const int tokens = shape.tokens;
  if (tokens == 0) return;
  Kokkos::parallel_for(
      label, Policy(exec, shape.evaluations * tokens * parts, Space::team_threads),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        const int row = team.league_rank() / parts;
        f(team, row / tokens, row % tokens, team.league_rank() % parts);
      });
}

/// Sum of f(i) over [0, n), by the whole team.
template <class Team, class F>
KOKKOS_INLINE_FUNCTION float team_sum(const Team& team, int n, const F& f) {
  float sum = 0.0F;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(team, n), [&](const int i, float& part) { part += f(i); }, sum);
  return sum;
}

struct RmsNorm {
  Rows y, x;
  const float* weight;
  int size;
  float eps;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int part) const {
    const float* const in = x.row(e, token) + part * size;
    float* const out = y.row(e, token) + part * size;
    const float* const w = weight + static_cast<std::int64_t>(e) * size;
    const float squares = team_sum(team, size, [&](int i) { return in[i] * in[i]; });
    const float scale = 1.0F / sqrtf(squares / static_cast<float>(size) + eps);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](const int i) { out[i] = w[i] * (in[i] * scale); });
  }
};

struct LayerNorm {
  Rows y, x;
  const float *weight, *bias;
  float eps;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    const int n = x.features;
    const float* const in = x.row(e, token);
    float* const out = y.row(e, token);
    const float mean = team_sum(team, n, [&](int i) { return in[i]; }) / static_cast<float>(n);
    const float squares = team_sum(team, n, [&](int i) { return (in[i] - mean) * (in[i] - mean); });
    const float scale = 1.0F / sqrtf(squares / static_cast<float>(n) + eps);
    const std::int64_t of = static_cast<std::int64_t>(e) * n;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](const int i) {
      const float normed = (in[i] - mean) * scale;
      out[i] = weight == nullptr ? normed : ScalarLanes::fma(normed, weight[of + i], bias[of + i]);
    });
  }
};

struct Rotate {
  Rows x;
  int half;
  const std::int32_t* positions;
  const float* table;  // (positions, 2, half): core/kernels/rope.hpp
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    const float* const cosines = table + static_cast<std::int64_t>(positions[token]) * 2 * half;
    const float* const sines = cosines + half;
    float* const row = x.row(e, token);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, x.features / 2), [&](const int index) {
      const int i = index % half;
      float* const a = row + index / half * 2 * half + i;
      float* const b = a + half;
      const float first = *a, second = *b;
      *a = first * cosines[i] - second * sines[i];
      *b = second * cosines[i] + first * sines[i];
    });
  }
};

struct SiluMultiply {
  Rows gate, up;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    float* const g = gate.row(e, token);
    const float* const u = up.row(e, token);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, gate.features),
                         [&](const int i) { g[i] = g[i] / (1.0F + expf(-g[i])) * u[i]; });
  }
};

struct Relu {
  Rows x;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    float* const row = x.row(e, token);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, x.features),
                         [&](const int i) { row[i] = row[i] < 0.0F ? 0.0F : row[i]; });
  }
};

struct GatherRows {
  Rows out, x;
  const std::int32_t* tokens;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int i, int) const {
    const float* const from = x.row(e, tokens[i]);
    float* const to = out.row(e, i);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, x.features), [&](const int c) { to[c] = from[c]; });
  }
};

struct AddBias {
  Rows y;
  const float* bias;  // (evaluations, features)
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    float* const row = y.row(e, token);
    const float* const b = bias + static_cast<std::int64_t>(e) * y.features;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, y.features), [&](const int i) { row[i] += b[i]; });
  }
};

struct RoundRows {
  std::byte* out;
  Rows x;
  Compute compute;
  std::int64_t padded;  // rows of an evaluation in `out`
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, int e, int token, int) const {
    const float* const from = x.row(e, token);
    auto* const to = reinterpret_cast<std::uint16_t*>(out) + (e * padded + token) * x.features;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, x.features), [&](const int i) {
      to[i] = compute == Compute::bf16 ? Bfloat16::nearest(from[i]) : Float16::nearest(from[i]);
    });
  }
};

}  // namespace detail

/// y = weight * x / sqrt(mean(x^2) + eps) over each run of `size` features; weight (evaluations, size). y may be x.
template <class Space>
void rms_norm_rows(const typename Space::Exec& exec, const Rows& y, const Rows& x, const float* weight, int size,
                   double eps) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::rms_norm", x, x.features / size,
                                   detail::RmsNorm{y, x, weight, size, static_cast<float>(eps)});
}

/// y = weight * (x - mean) / sqrt(variance + eps) + bias over a row; weight and bias both null, or (evaluations,
/// features). y may be x.
template <class Space>
void layer_norm_rows(const typename Space::Exec& exec, const Rows& y, const Rows& x, const float* weight,
                     const float* bias, double eps) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::layer_norm", x, 1,
                                   detail::LayerNorm{y, x, weight, bias, static_cast<float>(eps)});
}

/// Rotates every head of x by the row of `table` at its token's position; a head has 2 * half features.
template <class Space>
void rotate_rows(const typename Space::Exec& exec, const Rows& x, int half, const std::int32_t* positions,
                 const float* table) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::rotate", x, 1, detail::Rotate{x, half, positions, table});
}

/// gate = silu(gate) * up.
template <class Space>
void silu_multiply_rows(const typename Space::Exec& exec, const Rows& gate, const Rows& up) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::silu_multiply", gate, 1, detail::SiluMultiply{gate, up});
}

/// x = max(x, 0); NaN stays NaN.
template <class Space>
void relu_rows(const typename Space::Exec& exec, const Rows& x) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::relu", x, 1, detail::Relu{x});
}

/// out(e, i) = x(e, tokens[i]).
template <class Space>
void gather_rows_of(const typename Space::Exec& exec, const Rows& out, const Rows& x, const std::int32_t* tokens) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::gather_rows", out, 1, detail::GatherRows{out, x, tokens});
}

/// y += bias (evaluations, features).
template <class Space>
void add_bias_rows(const typename Space::Exec& exec, const Rows& y, const float* bias) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::add_bias", y, 1, detail::AddBias{y, bias});
}

/// out = round_C(x), 16-bit words (evaluations, padded, features).
template <class Space>
void round_rows(const typename Space::Exec& exec, std::byte* out, const Rows& x, Compute compute, std::int64_t padded) {
  detail::for_each_row_part<Space>(exec, "distzo2::device::round", x, 1, detail::RoundRows{out, x, compute, padded});
}

}  // namespace distzo2
