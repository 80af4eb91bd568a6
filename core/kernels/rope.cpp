// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/rope.hpp"

#include "core/kernels/row_loop.hpp"
#include "core/round_up.hpp"

#include <cmath>
#include <numbers>

namespace distzo2 {

std::vector<float> rope_frequencies(const RopeConfig& rope, int head_dim) {
  std::vector<float> frequencies(static_cast<std::size_t>(head_dim) / 2);
  const auto theta = static_cast<double>(static_cast<float>(rope.theta));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    frequencies[i] = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  if (!rope.llama3_scaling) return frequencies;
  const auto factor = static_cast<float>(rope.factor);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high_minus_low = static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  const auto original = static_cast<float>(rope.original_max_positions);
  const auto longest = static_cast<float>(rope.original_max_positions / rope.low_freq_factor);
  const auto shortest = static_cast<float>(rope.original_max_positions / rope.high_freq_factor);
  for (float& f : frequencies) {
    const float wave_length = static_cast<float>(2.0 * std::numbers::pi) / f;
    if (wave_length < shortest) continue;
    const float scaled = f / factor;
    if (wave_length > longest) {
      f = scaled;
    } else {
      const float smooth = (original / wave_length - low) / high_minus_low;
      f = (1.0F - smooth) * f / factor + smooth * f;
    }
  }
  return frequencies;
}

void RopeTable::reserve(const RopeConfig& rope, int head_dim, int count) {
  if (count <= positions_) return;
  constexpr int step = 256;
  const int wanted = round_up(count, step);
  if (frequencies_.empty()) frequencies_ = rope_frequencies(rope, head_dim);
  std::size_t const half = frequencies_.size();
  values_.resize(static_cast<std::size_t>(wanted) * half * 2);
  for (int p = positions_; p < wanted; ++p) {
    float* const row = values_.data() + static_cast<std::size_t>(p) * half * 2;
    for (std::size_t i = 0; i < half; ++i) {
      const auto angle = static_cast<double>(static_cast<float>(p) * frequencies_[i]);
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
  positions_ = wanted;
}

void rotate(const HostExec& exec, const Rows& x, int head_dim, std::span<const std::int32_t> positions,
            const RopeTable& table) {
  const int half = head_dim / 2;
  const auto* const all_positions = positions.data();
  const auto* const all_tables = &table;
  for_each_row(exec, "distzo2::rotate", x, [=](int e, int token) {
    float const* const cosines = all_tables->at(all_positions[token]);
    float const* const sines = cosines + half;
    float* const row = x.row(e, token);
    for (int head = 0; head < x.features; head += head_dim) {
      float* const a = row + head;
      float* const b = a + half;
      for (int i = 0; i < half; ++i) {
        float const first = a[i];
        float const second = b[i];
        a[i] = first * cosines[i] - second * sines[i];
        b[i] = second * cosines[i] + first * sines[i];
      }
    }
  });
}

}  // namespace distzo2
