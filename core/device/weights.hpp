// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/four.hpp"
#include "core/device/records.hpp"
#include "core/device/space.hpp"
#include "core/workspace.hpp"

#include <cstdint>

namespace distzo2 {

/// Elements of a tensor in the memory that computes.
struct Elements {
  std::byte* data = nullptr;
  Storage storage = Storage::fp32;
  std::uint64_t first = 0;  // global index of data's first element
  std::int64_t count = 0;
};

/// Blocks of four global indices that the elements touch.
DISTZO2_FUNCTION std::int64_t four_blocks(std::uint64_t first, std::int64_t count) {
  return static_cast<std::int64_t>((first + static_cast<std::uint64_t>(count) + 3) / 4 - first / 4);
}

/// Calls put(evaluation, values) with fma(scale, z, theta) of four elements, for every evaluation; z once a direction.
template <class Put>
DISTZO2_FUNCTION void perturb_four(const float* theta, std::uint64_t block, const Directions& directions,
                                   const Put& put) {
  for (int d = 0; d < directions.count; ++d) {
    const DirectionEntry entry = directions.entries[d];
    float z[4];
    if (entry.direction != 0)
      direction_block(directions.gaussian, directions.seed, directions.t, entry.direction, block, z);
    for (int i = entry.begin; i < entry.end; ++i) {
      const EvaluationEntry e = directions.members[i];
      float w[4];
      for (int j = 0; j < 4; ++j) w[j] = entry.direction == 0 ? theta[j] : ScalarLanes::fma(e.scale, z[j], theta[j]);
      put(e.evaluation, w);
    }
  }
}

/// One call has four elements.
struct MakeWeights {
  Elements theta;
  Records records;
  Directions directions;
  std::byte* out;  // (evaluations, stride); null where theta is only brought up to date
  Compute compute;
  std::int64_t stride;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t index) const {
    const std::uint64_t block = theta.first / 4 + static_cast<std::uint64_t>(index);
    const auto i = static_cast<std::int64_t>(4 * block - theta.first);  // -3 .. -1 where the first four are not whole
    float x[4];
    load_four(x, theta.data, theta.storage, i, theta.count);
    apply_records(x, block, records, 0, records.absorb);
    // Exact: what is absorbed ends at a rounding point.
    if (records.absorb > 0) store_four(theta.data, theta.storage, x, i, theta.count);
    apply_records(x, block, records, records.absorb, records.count);
    if (out == nullptr) return;
    perturb_four(x, block, directions, [&](int e, const float* w) {
      store_four(out + e * stride * static_cast<std::int64_t>(bytes_of_compute()), as_storage(compute), w, i,
                 theta.count);
    });
  }
  KOKKOS_INLINE_FUNCTION std::size_t bytes_of_compute() const { return compute == Compute::fp32 ? 4 : 2; }
};

static_assert(sizeof(MakeWeights) <= most_kernel_bytes);

/// The deferred update and all evaluations' weights in one pass over theta: absorbed records are applied and written
/// back, later ones applied, and, where `out` is not null, out[e * stride + i] = round_C(fma(scale_e, z, theta_i)).
template <class Space>
void make_weights(const typename Space::Exec& exec, std::byte* out, const Elements& theta, const Records& records,
                  const Directions& directions, Compute compute, std::int64_t stride) {
  if (theta.count == 0) return;
  Kokkos::parallel_for("distzo2::device::make_weights",
                       Kokkos::RangePolicy<typename Space::Exec, Kokkos::IndexType<std::int64_t>>(
                           exec, 0, four_blocks(theta.first, theta.count)),
                       MakeWeights{theta, records, directions, out, compute, stride});
}

/// out(e, j, :) (+)= fma(scale_e, z, theta)(row ids[j], :), records replayed, nothing written. `table` has `cols`
/// columns and all rows, or, where `gathered`, the rows of `ids` one after another.
template <class Space>
void look_up_rows(const typename Space::Exec& exec, const Rows& out, const std::int32_t* ids, const Elements& table,
                  std::int64_t cols, bool gathered, const Records& records, const Directions& directions, bool add) {
  using Team = typename Kokkos::TeamPolicy<typename Space::Exec>::member_type;
  Kokkos::parallel_for(
      "distzo2::device::look_up_rows", Kokkos::TeamPolicy<typename Space::Exec>(exec, out.tokens, Space::team_threads),
      KOKKOS_LAMBDA(const Team& team) {
        const int token = team.league_rank();
        const std::int64_t id = ids[token];
        const std::uint64_t first = table.first + static_cast<std::uint64_t>(id * cols);
        const std::int64_t row = gathered ? token : id;
        const std::int64_t element_bytes = table.storage == Storage::fp32 ? 4 : 2;
        const std::byte* const data = table.data + row * cols * element_bytes;
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, static_cast<int>(four_blocks(first, cols))),
                             [&](const int index) {
                               const std::uint64_t block = first / 4 + static_cast<std::uint64_t>(index);
                               const auto i = static_cast<std::int64_t>(4 * block - first);
                               float x[4];
                               load_four(x, data, table.storage, i, cols);
                               apply_records(x, block, records, 0, records.count);
                               perturb_four(x, block, directions, [&](int e, const float* w) {
                                 float* const to = out.row(e, token) + i;
                                 for (int j = 0; j < 4; ++j)
                                   if (i + j >= 0 && i + j < cols) to[j] = add ? to[j] + w[j] : w[j];
                               });
                             });
      });
}

}  // namespace distzo2
