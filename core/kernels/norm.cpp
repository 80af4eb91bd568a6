// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/norm.hpp"

#include "core/kernels/lanes.hpp"
#include "core/kernels/row_loop.hpp"

#include <cmath>

namespace distzo2 {

void rms_norm(const HostExec& exec, const Rows& y, const Rows& x, const float* weight, int size, double eps) {
  const auto epsilon = static_cast<float>(eps);
  for_each_row(exec, "distzo2::rms_norm", x, [=](int e, int token) {
    float const* const w = weight + static_cast<std::int64_t>(e) * size;
    for (int begin = 0; begin < x.features; begin += size) {
      float const* const in = x.row(e, token) + begin;
      float* const out = y.row(e, token) + begin;
      float const squares = sum_over(in, size, [](Lanes v) { return v * v; });
      float const scale = 1.0F / std::sqrt(squares / static_cast<float>(size) + epsilon);
      for (int i = 0; i < size; ++i) out[i] = w[i] * (in[i] * scale);
    }
  });
}

void layer_norm(const HostExec& exec, const Rows& y, const Rows& x, const float* weight, const float* bias,
                double eps) {
  const auto epsilon = static_cast<float>(eps);
  const int n = x.features;
  for_each_row(exec, "distzo2::layer_norm", x, [=](int e, int token) {
    float const* const in = x.row(e, token);
    float* const out = y.row(e, token);
    float const mean = sum_over(in, n, [](Lanes v) { return v; }) / static_cast<float>(n);
    float const squares = sum_over(in, n, [m = broadcast(mean)](Lanes v) { return (v - m) * (v - m); });
    float const scale = 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon);
    if (weight == nullptr) {
      for (int i = 0; i < n; ++i) out[i] = (in[i] - mean) * scale;
      return;
    }
    float const* const w = weight + static_cast<std::int64_t>(e) * n;
    float const* const b = bias + static_cast<std::int64_t>(e) * n;
    for (int i = 0; i < n; ++i) out[i] = std::fma((in[i] - mean) * scale, w[i], b[i]);
  });
}

}  // namespace distzo2
