// SPDX-License-Identifier: BSD-3-Clause
#include "core/parameter_store.hpp"

#include "core/exec.hpp"
#include "core/panels.hpp"
#include "core/pieces.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace distzo2 {
namespace {

class KokkosArena final : public HostArena {
public:
  std::shared_ptr<std::byte> allocate(const std::string& label, std::size_t bytes) override {
    constexpr std::size_t page = 4096;
    const std::size_t size = bytes + page;
    const Kokkos::View<std::byte*, Kokkos::HostSpace> memory(
        Kokkos::view_alloc(HostExec(), label, Kokkos::WithoutInitializing), size);
    constexpr std::size_t piece = std::size_t{1} << 20;
    for_each_piece(pieces_of(size, piece), [&](std::size_t i) {  // a view would set byte after byte
      std::memset(memory.data() + i * piece, 0, std::min(piece, size - i * piece));
    });
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte* aligned = memory.data() + (page - address % page) % page;
    return {aligned, [memory](std::byte*) {}};  // the view lives as long as the pointer
  }
};

std::int64_t vectors_offset(const Block& b, Storage s) {
  return (b.vectors_first - b.first) * static_cast<std::int64_t>(bytes_of(s));
}

/// Pieces of a tensor's elements that a thread takes at a time.
constexpr std::int64_t piece_elements = 16 * chunk_elements;

}  // namespace

std::unique_ptr<HostArena> make_kokkos_arena() {
  return std::make_unique<KokkosArena>();
}

ParameterStore::ParameterStore(TensorTable table, UpdateRule rule, HostArena& arena)
    : table_(std::move(table)),
      rule_(rule),
      version_(table_.tensors.size(), 0),
      scratch_(std::make_unique<PanelScratch>(HostExec())) {
  scratch_->prepare(piece_elements, 0);
  for (std::size_t b = 0; b < table_.blocks.size(); ++b) {
    const Block& block = table_.blocks[b];
    const auto size = static_cast<std::size_t>(vectors_offset(block, rule_.storage) +
                                               (block.end - block.vectors_first) * std::int64_t{sizeof(float)});
    blocks_.push_back(arena.allocate("distzo2::block_" + std::to_string(b), size));
    bytes_ += size;
  }
}

ParameterStore::~ParameterStore() = default;

Weight ParameterStore::weight(int tensor) const {
  const auto index = static_cast<std::size_t>(tensor);
  const Tensor& t = table_.tensors[index];
  const Block& block = table_.blocks[static_cast<std::size_t>(t.block)];
  const Storage storage = t.matrix ? rule_.storage : Storage::fp32;
  const std::int64_t at =
      t.matrix ? (t.first - block.first) * static_cast<std::int64_t>(bytes_of(storage))
               : vectors_offset(block, rule_.storage) + (t.first - block.vectors_first) * std::int64_t{sizeof(float)};
  Weight w{blocks_[static_cast<std::size_t>(t.block)].get() + at,
           storage,
           t.matrix,
           t.rows,
           t.cols,
           static_cast<std::uint64_t>(t.first),
           &rule_,
           std::span<const StepRecord>(records_).subspan(version_[index] - first_record_),
           0};
  w.absorb = w.pending.size();
  if (storage != Storage::fp32)
    while (w.absorb > 0 && (w.pending[w.absorb - 1].t + 1) % rule_.round_every != 0) --w.absorb;
  return w;
}

void ParameterStore::import_values(int tensor, std::int64_t offset, std::span<const float> values) {
  assert(next_ == 0 && records_.empty());
  const Weight w = weight(tensor);
  if (w.storage == Storage::fp32)
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(w.data) + offset);
  else
    simd_kernels().store_nearest(reinterpret_cast<std::uint16_t*>(w.data) + offset, values.data(), w.storage,
                                 values.size());
}

void ParameterStore::append(StepRecord record) {
  assert(record.t == next_);
  // Records that every tensor has absorbed are dropped here, between passes, when nobody holds a span of them.
  const std::uint32_t oldest = *std::min_element(version_.begin(), version_.end());
  records_.erase(records_.begin(), records_.begin() + (oldest - first_record_));
  first_record_ = oldest;
  records_.push_back(std::move(record));
  ++next_;
}

void ParameterStore::absorbed(int tensor) {
  version_[static_cast<std::size_t>(tensor)] += static_cast<std::uint32_t>(weight(tensor).absorb);
}

void ParameterStore::sample_rounding_of(int tensor) {
  sample_rounding(rounding_, weight(tensor), scratch_->thread(0).scratch.data());
}

void ParameterStore::apply_pending(int tensor) {
  const Weight w = weight(tensor);
  if (w.absorb == 0) return;
  sample_rounding_of(tensor);
  const std::int64_t size = w.rows * w.cols;
  const auto pieces = static_cast<int>(pieces_of(size, piece_elements));
  if (pieces == 1) {  // a region of threads would cost more than a norm's weights
    bring_up_to_date(w, 0, size, scratch_->thread(0));
    absorbed(tensor);
    return;
  }
  const HostExec exec;
  PanelScratch& scratch = *scratch_;
  const Kokkos::Experimental::UniqueToken<HostExec> token(exec);
  Kokkos::parallel_for("distzo2::apply_pending", Kokkos::RangePolicy<HostExec, Kokkos::IndexType<int>>(exec, 0, pieces),
                       [&](int i) {
                         const int thread = token.acquire();
                         const std::int64_t offset = i * piece_elements;
                         bring_up_to_date(w, offset, std::min(piece_elements, size - offset), scratch.thread(thread));
                         token.release(thread);
                       });
  absorbed(tensor);
}

void ParameterStore::apply_pending() {
  for (int i = 0; i < std::ssize(table_.tensors); ++i) apply_pending(i);
}

void ParameterStore::read(int tensor, std::int64_t offset, std::span<float> out) const {
  float scratch[chunk_elements];
  replay(weight(tensor), offset, std::ssize(out), out.data(), scratch);
}

}  // namespace distzo2
