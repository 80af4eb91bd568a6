// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/float16.hpp"
#include "core/precision.hpp"
#include "core/random.hpp"

#include <cstdint>

namespace distzo2 {

// The update and the directions as a kernel takes them: tables in the memory that computes, and the scalar form of
// core/update.hpp with its bits.

/// A StepRecord; its c[k] are Records::c[c_begin + k - 1].
struct RecordEntry {
  std::uint32_t t = 0;
  float decay = 1.0F;  // of a decayed tensor
  std::uint32_t c_begin = 0, c_end = 0;
  bool rounds = false;  // a rounding point
};

/// The records pending on a tensor, oldest first, and what else its update depends on.
struct Records {
  const RecordEntry* entries = nullptr;
  const float* c = nullptr;
  std::uint32_t absorb = 0;  // of `count`: those that are written back
  std::uint32_t count = 0;
  std::uint64_t seed = 0;
  Storage storage = Storage::fp32;  // of the tensor: what rounding points round to
  bool gaussian = true, matrix = true, stochastic = true;
};

/// Evaluations [begin, end) of Directions::members share the z of one direction; direction 0: clean weights.
struct DirectionEntry {
  std::uint32_t direction = 0;
  int begin = 0, end = 0;
};
struct EvaluationEntry {
  int evaluation = 0;
  float scale = 0.0F;
};

/// The evaluations of a pass by direction.
struct Directions {
  const DirectionEntry* entries = nullptr;
  const EvaluationEntry* members = nullptr;
  int count = 0;
  std::uint64_t seed = 0;
  std::uint32_t t = 0;
  bool gaussian = true;
};

/// Records [begin, end) applied to theta[0..4), the values of global indices 4 * block .. 4 * block + 3.
DISTZO2_FUNCTION void apply_records(float* theta, std::uint64_t block, const Records& r, std::uint32_t begin,
                                    std::uint32_t end) {
  float z[4];
  for (std::uint32_t i = begin; i < end; ++i) {
    const RecordEntry record = r.entries[i];
    if (r.matrix && record.decay != 1.0F)
      for (int j = 0; j < 4; ++j) theta[j] = record.decay * theta[j];
    for (std::uint32_t k = record.c_begin; k < record.c_end; ++k) {
      const float c = r.c[k];
      if (c == 0.0F) continue;
      direction_block(r.gaussian, r.seed, record.t, k - record.c_begin + 1, block, z);
      for (int j = 0; j < 4; ++j) theta[j] = ScalarLanes::fma(c, z[j], theta[j]);
    }
    if (!record.rounds || !r.matrix || r.storage == Storage::fp32) continue;
    PhiloxBlock words{};
    if (r.stochastic) words = random_block(r.seed, block, record.t, Stream::rounding, 0);
    for (int j = 0; j < 4; ++j) {
      const float x = theta[j];
      if (r.storage == Storage::bf16)
        theta[j] = Bfloat16::to_float(r.stochastic ? Bfloat16::stochastic(x, words.w[j]) : Bfloat16::nearest(x));
      else
        theta[j] = Float16::to_float(r.stochastic ? Float16::stochastic(x, words.w[j]) : Float16::nearest(x));
    }
  }
}

}  // namespace distzo2
