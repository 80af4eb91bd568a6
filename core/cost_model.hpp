// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/layout.hpp"
#include "core/memory_plan.hpp"
#include "core/model_config.hpp"
#include "core/precision.hpp"
#include "core/tensor_table.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace distzo2 {

// A step's time from a memory plan and a machine's rates, before anything runs: a prediction, fitted to nothing.
//
// A rank computes e = E / P evaluations, which need z of k directions, of s = ceil(B / D) sequences. With M elements in
// the matrices that are multiplied (H of them in the head), L in those whose rows are only looked up, R rows (tokens of
// s sequences) and R' loss terms, both in whole tiles, S and C bytes of storage and compute precision:
//
//   products     2 e ((M - H) R + H R')                    flop, at the GEMM rate of the compute precision
//   attention    2 e s layers heads head_dim T^2           flop (causal, two products) of sequences of T tokens
//   z            k M + q r (M + L)                         normals: for the evaluations, and for the records applied
//   weights      M (S + e C) + v (M + 2 L) S               bytes: theta read, perturbed, and stored
//   activations  8 * 4 e R layers hidden                   bytes: norms and the residual stream
//
// The n ranks of a node with devices that NVLink joins each own u = 1 / n of every block that streams, and update that
// part alone; those of a node without devices share what does not stream, and each updates w = 1 / n of it; else u and
// w are 1. Of the share f that streams and is stored every N steps (N + 1) / 2 records are applied a step on average,
// to the rest one: r = (1 - f) w + f u (N + 1) / 2, and v = (1 - f) w + f u. Without devices the machine's rates are of
// all its cores, and each of n ranks of a node has 1 / n of them. The other lanes, with bytes as the memory plan has
// them:
//
//   upload       u link.read           gather     (n - 1) / n link.read, over NVLink
//   write back   u link.written        disk       of the node: 2 min / mixed + the rest of reads or writes at their own
//
// Three more bounds of a step are lanes that share something. Cores: where copies are made by the cores that compute,
// compute + (upload + write back) / cores. Buffers: each of b buffers is filled, computed on and emptied in turn, so K
// units take K (ahead + compute + back) / b, with the unit's time in the lanes before and after computing.
//
//   step = longest bound + fill and drain + exchange
//
// Fill and drain, of a pipeline that goes on over the ends of steps: where computing is the longest, what the first
// unit takes to come beyond the time in which what never streams (the head) is computed; where another lane is, that
// time beyond what filling the other b - 1 buffers takes. Exchange: latency * ceil(log2 ranks) and the bytes of all
// losses and counts, B (E + 1) doubles, where there is more than one node. Not in it: a host memory that cannot feed
// all links of a node at once, kernels' launch times, and waiting for a slower rank.

/// A machine of equal nodes; rates a second, 0 where not known. Of a device, or, without devices, of all cores of a
/// node.
struct MachineRates {
  int nodes = 1;
  int devices = 0;  // of a node; 0: its cores compute
  int cores = 1;    // of a node
  double host_bytes = 0, device_bytes = 0;
  double gemm_fp32_flop = 0, gemm_bf16_flop = 0, gemm_fp16_flop = 0;  // with what becomes of the products
  double attention_flop = 0;                                          // 0: as products
  double normals = 0;
  double memory_bytes = 0;  // in making weights and moving activations
  double upload_bytes = 0, download_bytes = 0, nvlink_bytes = 0;
  double network_latency_s = 0, network_bytes = 0;
  double disk_read_bytes = 0, disk_write_bytes = 0, disk_mixed_bytes = 0;  // mixed: as much read as written, both
};
double gemm_flop_of(const MachineRates& machine, Compute compute);

/// What a step works on.
struct StepWork {
  ModelConfig model;
  Storage storage = Storage::fp32;
  Compute compute = Compute::fp32;
  Difference difference = Difference::central;
  int directions = 1;
  double tokens_of_sequence = 0, terms_of_sequence = 0;  // means
  Layout layout;                                         // with the step's evaluations and batch
};

/// Lanes of a step, and bounds by what they share.
enum class Bound : std::uint8_t { upload, gather, compute, write_back, disk, cores, buffers };
constexpr int bound_count = 7;
const char* name_of(Bound bound);

/// A line of the prediction: so much work of a lane at a rate.
struct CostTerm {
  Bound lane = Bound::compute;
  std::string name;
  double amount = 0;      // flop, normals or bytes
  const char* unit = "";  // of the amount
  double rate = 0;        // a second
  double seconds = 0;
};

struct StepPrediction {
  int ranks = 1, nodes = 1, ranks_of_node = 1;
  bool slices = false;  // ranks of a node upload a part of each block and gather the rest
  std::vector<CostTerm> terms;
  std::array<double, bound_count> seconds{};  // of each bound; 0 where it has nothing to do
  Bound longest = Bound::compute;
  double fill_and_drain_s = 0, exchange_s = 0, step_s = 0;
  double tokens = 0;  // of a step, over all ranks
  double tokens_per_s() const { return tokens / step_s; }
  double of(Bound b) const { return seconds[static_cast<std::size_t>(b)]; }
};

/// Ranks of a node: as many as devices, or, without any, the ranks spread over the nodes. Throws Error (usage), with
/// the arithmetic, where the machine has too few devices.
int ranks_of_node(const MachineRates& machine, const Layout& layout);

/// The rates that this prediction needs and the machine does not have, as names of members of MachineRates.
std::vector<double MachineRates::*> missing_rates(const MemoryPlan& plan, const StepWork& work,
                                                  const MachineRates& machine);

/// Step time by the formulas above. The plan is a rank's own. Throws Error (internal) where rates are missing.
StepPrediction predict_step(const TensorTable& table, const MemoryPlan& plan, const StepWork& work,
                            const MachineRates& machine);

}  // namespace distzo2
