// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace distzo2 {

/// What a step is reckoned to take where units lie on disk, in seconds, at stated rates: by it a plan chooses how often
/// they are stored, so that the same deck has the same plan on every machine with as many threads. What a step of a
/// plan takes on a machine, the cost model says (core/cost_model.hpp).
struct WriteBackCost {
  double compute_s = 0;  // with one record to apply, as where every step stores
  double replay_s = 0;   // one more record to apply to all that streams
  double read_s = 0;     // of the disk: all that a pass reads
  double write_s = 0;    // all that streams from it, written once
};

/// A step where every N-th stores: a read block then lacks (N + 1) / 2 records on average, and 1 / N of all is written.
double step_seconds(const WriteBackCost& cost, std::uint32_t every);

/// `write back every` where the deck leaves it open: of the multiples of R up to eight steps (R itself where it is
/// more) the cheapest; a longer one where a step takes at most a fiftieth more, since writes wear a disk out.
std::uint32_t cheapest_write_back(const WriteBackCost& cost, std::uint32_t round_every);

// Stated rates. A thread of a host computes so many floating-point operations and normal variates a second (about what
// docs/performance.md measures); a device all together; a disk moves so many bytes, read and write mixed.
constexpr double host_flop_per_s = 1e11, host_bf16_flop_per_s = 2e11, host_variates_per_s = 1e9;
constexpr double device_flop_per_s = 3e14, device_variates_per_s = 1e11;
constexpr double disk_bytes_per_s = 1.5e9;

}  // namespace distzo2
