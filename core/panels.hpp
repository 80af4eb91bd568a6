// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/exec.hpp"
#include "core/gemm.hpp"
#include "core/parameter_store.hpp"
#include "core/perturbation.hpp"
#include "core/simd/kernels.hpp"
#include "core/tool_hooks.hpp"
#include "core/update.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace distzo2 {

// Panel shapes. With row_tile they are part of the arithmetic fingerprint and depend on the model alone: a row's bits
// depend on nothing but the row. Chosen by measurement (docs/performance.md): both signs of a panel, the packed one and
// a tile of activations stay in a 1 MiB cache, and the GEMM reaches 0.95 of its peak.
constexpr int panel_rows(std::int64_t cols) {
  return cols <= 1024 ? 64 : cols <= 4096 ? 32 : 16;
}

/// Of a tensor that is imported or updated by itself, elements that a thread takes at a time.
constexpr std::int64_t piece_elements = 16 * chunk_elements;

/// Evaluations of one direction, which share their z. Direction 0: clean weights.
struct DirectionGroup {
  std::uint32_t direction = 0;
  std::vector<int> evaluations;
};

/// One thread's buffers and its clock.
struct ThreadPanels {
  ScratchVector<float> theta;           // a panel of weights as fp32 (16-bit storage)
  std::vector<ScratchVector<float>> w;  // perturbed panels, one an evaluation of a direction; bf16 words or floats
  ScratchVector<float> packed;          // the panel that is being multiplied, as the GEMM takes it
  ScratchVector<float> z;               // (chunk_elements)
  ScratchVector<float> scratch;         // (chunk_elements) for the update
  ScratchVector<float> tile;            // a GEMM's result (row tile, panel rows)
  double z_s = 0, gemm_s = 0;           // time in making weights and in multiplying, with what becomes of the products
  double product_s = 0;                 // of gemm_s, the products alone, where they are timed
};

/// A row's softmax so far: its largest logit, the sum of exp(logit - largest).
struct SoftmaxPartial {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0.0;
};

/// All buffers of `linear`, kept between calls: per-thread panels and the activations rounded to the compute precision.
class PanelScratch {
public:
  explicit PanelScratch(const HostExec& exec) : threads_(static_cast<std::size_t>(exec.concurrency())) {
    for (ThreadPanels& t : threads_) {
      t.z.resize(chunk_elements);
      t.scratch.resize(chunk_elements);
    }
  }
  /// Buffers for panels of this many elements, `group` of them at once; allocates only where they have to grow.
  void prepare(std::int64_t panel_elements, std::size_t group);
  /// And for multiplying them: a packed panel and a result.
  void prepare_gemm(std::size_t packed_floats, std::size_t tile_floats);
  /// The evaluations of p by direction, kept until they are others.
  const std::vector<DirectionGroup>& groups(const Perturbation& p);
  ThreadPanels& thread(int i) { return threads_[static_cast<std::size_t>(i)]; }
  std::vector<ThreadPanels>& threads() { return threads_; }
  ScratchVector<float>& rounded() { return rounded_; }  // x in the compute precision
  std::size_t bytes() const;
  double gemm_flop = 0;
  bool time_products = false;  // split gemm_s: two readings of the clock a tile
  // Of LogProbHead.
  ScratchVector<SoftmaxPartial> partials;  // (rows, panels of a round)
  ScratchVector<SoftmaxPartial> softmax;   // (evaluations, rows)
  ScratchVector<double> target_logit;      // (evaluations, terms)
  ScratchVector<int> by_target;            // terms, by their target

private:
  std::vector<ThreadPanels> threads_;
  ScratchVector<float> rounded_;
  std::vector<Evaluation> grouped_;  // what groups_ was made of
  std::vector<DirectionGroup> groups_;
};

/// fp32 values of elements [offset, offset + n) of the tensor, n <= a panel: pending records applied, the absorbed ones
/// written back. Points into the store (fp32) or into t.theta.
const float* bring_up_to_date(const Weight& w, std::int64_t offset, std::int64_t n, ThreadPanels& t);

/// The same for a reader that must not write: into `out`.
void read_up_to_date(const Weight& w, std::int64_t offset, std::int64_t n, float* out, float* scratch);

/// Panels of this group from theta: t.w[j] is round_C(fma(scale, z, theta)) of group.evaluations[j]. A clean evaluation
/// in fp32 gives theta itself. Returns the panel of group member j through `panel_of`.
void make_panels(const Weight& w, std::int64_t offset, std::int64_t n, const float* theta, const Perturbation& p,
                 const DirectionGroup& group, Compute compute, ThreadPanels& t);
const void* panel_of(const float* theta, const DirectionGroup& group, std::size_t j, Compute compute,
                     const ThreadPanels& t);

/// z[0..n) of a direction of p at global indices first .. first + n.
void fill_z(float* z, const Perturbation& p, std::uint32_t direction, std::uint64_t first, std::int64_t n);

}  // namespace distzo2
