// SPDX-License-Identifier: BSD-3-Clause
#include "core/panels.hpp"

namespace distzo2 {
namespace {

float* as_float(std::byte* p) {
  return reinterpret_cast<float*>(p);
}
std::uint16_t* as_words(std::byte* p) {
  return reinterpret_cast<std::uint16_t*>(p);
}

void grow(ScratchVector<float>& v, std::size_t n) {
  if (v.size() < n) v.resize(n);
}

void apply_if_any(float* theta, std::uint64_t first, std::int64_t n, const Weight& w,
                  std::span<const StepRecord> records, float* scratch) {
  if (!records.empty()) apply_records(theta, first, static_cast<std::size_t>(n), w.matrix, *w.rule, records, scratch);
}

}  // namespace

void PanelScratch::prepare(std::int64_t panel_elements, std::size_t group) {
  for (ThreadPanels& t : threads_) {
    grow(t.theta, static_cast<std::size_t>(panel_elements));
    if (t.w.size() < group) t.w.resize(group);
    for (ScratchVector<float>& v : t.w) grow(v, static_cast<std::size_t>(panel_elements));
  }
}

void PanelScratch::prepare_gemm(std::size_t packed_floats, std::size_t tile_floats) {
  for (ThreadPanels& t : threads_) {
    grow(t.packed, packed_floats);
    grow(t.tile, tile_floats);
  }
}

std::size_t PanelScratch::bytes() const {
  std::size_t floats =
      rounded_.capacity() + 4 * (partials.capacity() + softmax.capacity()) + 2 * target_logit.capacity();
  for (const ThreadPanels& t : threads_) {
    floats += t.theta.capacity() + t.z.capacity() + t.scratch.capacity() + t.packed.capacity() + t.tile.capacity();
    for (const ScratchVector<float>& v : t.w) floats += v.capacity();
  }
  return floats * sizeof(float);
}

const std::vector<DirectionGroup>& PanelScratch::groups(const Perturbation& p) {
  if (p.evaluations == grouped_) return groups_;
  grouped_ = p.evaluations;
  groups_.clear();
  for (int e = 0; e < std::ssize(p.evaluations); ++e) {
    const Evaluation& evaluation = p.evaluations[static_cast<std::size_t>(e)];
    const std::uint32_t direction = evaluation.scale == 0.0F ? 0 : evaluation.direction;
    auto group =
        std::find_if(groups_.begin(), groups_.end(), [&](const DirectionGroup& g) { return g.direction == direction; });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), DirectionGroup{direction, {}});
    group->evaluations.push_back(e);
  }
  return groups_;
}

void fill_z(float* z, const Perturbation& p, std::uint32_t direction, std::uint64_t first, std::int64_t n) {
  const SimdKernels& simd = simd_kernels();
  const auto fill = p.kind == DirectionKind::gaussian ? simd.fill_gaussian : simd.fill_rademacher;
  fill(z, p.seed, p.t, direction, first, static_cast<std::size_t>(n));
}

const float* bring_up_to_date(const Weight& w, std::int64_t offset, std::int64_t n, ThreadPanels& t) {
  const std::uint64_t first = w.first + static_cast<std::uint64_t>(offset);
  const auto absorbed = w.pending.first(w.absorb);
  const auto later = w.pending.subspan(w.absorb);
  if (w.storage == Storage::fp32) {  // vectors of a 16-bit model may have later records: who reads them replays
    float* theta = as_float(w.data) + offset;
    apply_if_any(theta, first, n, w, absorbed, t.scratch.data());
    return theta;
  }
  const SimdKernels& simd = simd_kernels();
  std::uint16_t* stored = as_words(w.data) + offset;
  float* theta = t.theta.data();
  for (std::int64_t i = 0, m = 0; i < n; i += m) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i);
    m = up_to_chunk_end(at, n - i);
    const auto count = static_cast<std::size_t>(m);
    simd.load_16(theta + i, stored + i, w.storage, count);
    apply_if_any(theta + i, at, m, w, absorbed, t.scratch.data());
    if (!absorbed.empty())  // exact: absorbed ends at a rounding point
      simd.store_nearest(stored + i, theta + i, w.storage, count);
    apply_if_any(theta + i, at, m, w, later, t.scratch.data());
  }
  return theta;
}

void read_up_to_date(const Weight& w, std::int64_t offset, std::int64_t n, float* out, float* scratch) {
  if (w.storage == Storage::fp32)
    std::copy_n(as_float(w.data) + offset, n, out);
  else
    simd_kernels().load_16(out, as_words(w.data) + offset, w.storage, static_cast<std::size_t>(n));
  apply_if_any(out, w.first + static_cast<std::uint64_t>(offset), n, w, w.pending, scratch);
}

void make_panels(const Weight& w, std::int64_t offset, std::int64_t n, const float* theta, const Perturbation& p,
                 const DirectionGroup& group, Compute compute, ThreadPanels& t) {
  const SimdKernels& simd = simd_kernels();
  const bool clean = group.direction == 0;
  if (clean && compute == Compute::fp32) return;  // theta itself is the panel
  for (std::int64_t i = 0; i < n; i += chunk_elements) {
    const std::int64_t m = std::min(chunk_elements, n - i);
    const auto count = static_cast<std::size_t>(m);
    if (!clean) fill_z(t.z.data(), p, group.direction, w.first + static_cast<std::uint64_t>(offset + i), m);
    const std::size_t panels = clean ? 1 : group.evaluations.size();
    for (std::size_t j = 0; j < panels; ++j) {
      const float scale = clean ? 0.0F : p.evaluations[static_cast<std::size_t>(group.evaluations[j])].scale;
      float* out = t.w[j].data();
      if (compute == Compute::fp32) {
        simd.perturb(out + i, theta + i, t.z.data(), scale, count);
      } else if (compute == Compute::fp16) {  // fp16 values in fp32 words
        auto* words = reinterpret_cast<std::uint16_t*>(t.scratch.data());
        if (!clean) simd.perturb(out + i, theta + i, t.z.data(), scale, count);
        simd.store_nearest(words, clean ? theta + i : out + i, Storage::fp16, count);
        simd.load_16(out + i, words, Storage::fp16, count);
      } else if (native_bf16()) {
        std::uint16_t* words = reinterpret_cast<std::uint16_t*>(out) + i;
        if (clean)
          simd.to_bf16(words, theta + i, count);
        else
          simd.perturb_bf16(words, theta + i, t.z.data(), scale, count);
      } else {  // no bf16 GEMM here: bf16 values in fp32 words
        auto* words = reinterpret_cast<std::uint16_t*>(t.scratch.data());
        if (clean)
          simd.to_bf16(words, theta + i, count);
        else
          simd.perturb_bf16(words, theta + i, t.z.data(), scale, count);
        simd.load_16(out + i, words, Storage::bf16, count);
      }
    }
  }
}

const void* panel_of(const float* theta, const DirectionGroup& group, std::size_t j, Compute compute,
                     const ThreadPanels& t) {
  if (group.direction != 0) return t.w[j].data();
  return compute == Compute::fp32 ? static_cast<const void*>(theta) : t.w[0].data();
}

}  // namespace distzo2
