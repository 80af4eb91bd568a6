// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/device/four.hpp"
#include "core/device/space.hpp"
#include "core/kernels/attention.hpp"
#include "core/packed_batch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace distzo2 {

// softmax(q k^T / sqrt(d)) v with no score matrix (Dao et al., FlashAttention, arXiv 2205.14135; the online softmax of
// Milakov and Gimelshein, arXiv 1805.02867): a team has a tile of B queries and goes over tiles of B keys with a
// running maximum and sum a query. Queries, a tile of keys or values, and the tile's scores lie in the team's shared
// memory; the sums of values in its threads' registers, 4 x 4 a thread and column group.

/// Rows of a tile, for heads of this size: what shared memory of 48 KiB holds.
constexpr int device_attention_rows(int head_dim) {
  return head_dim <= 128 ? 32 : 16;
}
constexpr int device_attention_head_dim = 256;  // the largest

namespace detail {

template <class Space, int B>
struct Attention {
  using Team = typename Kokkos::TeamPolicy<typename Space::Exec>::member_type;
  // 4 x 4 pieces of (B rows, head_dim columns) that a thread may have to hold.
  static constexpr int most_columns = B == 32 ? 128 : device_attention_head_dim;
  static constexpr int most_pieces = (B / 4 * (most_columns / 4) + Space::team_threads - 1) / Space::team_threads;
  static constexpr int score_stride = B + 1;  // odd strides: no two rows of a column share a bank

  Rows out, q, k, v;
  const AttentionSpan* spans;
  const AttentionTile* tiles;
  int kv_heads, group, head_dim;
  float scale;
  Compute compute;

  /// B is a multiple of 4, so this is one of 16: Kokkos hands out whole words of 8 bytes.
  KOKKOS_INLINE_FUNCTION static std::size_t scratch_bytes(int head_dim) {
    const int floats = 2 * B * (head_dim + 1) + B * score_stride + 3 * B;
    return static_cast<std::size_t>(floats) * sizeof(float);
  }

  /// The token of the span's i-th key: prefix first, then its own range.
  KOKKOS_INLINE_FUNCTION static int key_token(const AttentionSpan& s, int i) {
    const int prefix = s.prefix_end - s.prefix_begin;
    return i < prefix ? s.prefix_begin + i : s.query_begin + i - prefix;
  }

  /// A tile of keys or values; zeros beyond the n that there are.
  KOKKOS_INLINE_FUNCTION void load(const Team& team, float* to, const Rows& from, int evaluation, int column,
                                   const AttentionSpan& s, int first, int n) const {
    for (int i = team.team_rank(); i < B * head_dim; i += team.team_size()) {
      const int row = i / head_dim, d = i % head_dim;
      to[row * (head_dim + 1) + d] =
          row < n ? round_to(from.row(evaluation, key_token(s, first + row))[column + d], compute) : 0.0F;
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    const int units = q.evaluations * kv_heads;
    const AttentionTile tile = tiles[team.league_rank() / units];
    const AttentionSpan s = spans[tile.span];
    const int evaluation = team.league_rank() % units / kv_heads, kv_head = team.league_rank() % units % kv_heads;
    const int prefix = s.prefix_end - s.prefix_begin;
    const int span_rows = (s.query_end - s.query_begin) * group - tile.first_row;
    const int rows = span_rows < B ? span_rows : B;
    const int stride = head_dim + 1, rank = team.team_rank(), threads = team.team_size();
    const auto query_of = [&](int r) { return (tile.first_row + r) / group; };
    const auto column_of = [&](int r) { return (kv_head * group + (tile.first_row + r) % group) * head_dim; };

    auto* const shared = static_cast<float*>(team.team_shmem().get_shmem(static_cast<int>(scratch_bytes(head_dim))));
    float* const queries = shared;                     // (B, stride)
    float* const keys = queries + B * stride;          // (B, stride): keys, then values
    float* const scores = keys + B * stride;           // (B, score_stride)
    float* const largest = scores + B * score_stride;  // (B)
    float* const sums = largest + B;
    float* const keep = sums + B;

    for (int i = rank; i < B * head_dim; i += threads) {
      const int r = i / head_dim, d = i % head_dim;
      queries[r * stride + d] =
          r < rows ? round_to(q.row(evaluation, s.query_begin + query_of(r))[column_of(r) + d], compute) : 0.0F;
    }
    for (int r = rank; r < B; r += threads) {
      largest[r] = -INFINITY;
      sums[r] = 0.0F;
    }
    float acc[most_pieces][4][4] = {};
    const int column_groups = (head_dim + 3) / 4;
    const int key_count = prefix + query_of(rows - 1) + 1;
    for (int first = 0; first < key_count; first += B) {
      const int n = key_count - first < B ? key_count - first : B;
      team.team_barrier();  // nobody reads values any more
      load(team, keys, k, evaluation, kv_head * head_dim, s, first, n);
      team.team_barrier();
      // Scores, 2 rows x 4 keys at a time.
      for (int piece = rank; piece < B * B / 8; piece += threads) {
        const int key = piece % (B / 4), row = piece / (B / 4);
        float sum[2][4] = {};
        for (int d = 0; d < head_dim; ++d) {
          float a[2], b[4];
          for (int i = 0; i < 2; ++i) a[i] = queries[(row + i * (B / 2)) * stride + d];
          for (int j = 0; j < 4; ++j) b[j] = keys[(key + j * (B / 4)) * stride + d];
          for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) sum[i][j] = ScalarLanes::fma(a[i], b[j], sum[i][j]);
        }
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 4; ++j) {
            const int r = row + i * (B / 2), c = key + j * (B / 4);
            const bool visible = r < rows && c < n && first + c <= prefix + query_of(r);
            scores[r * score_stride + c] = visible ? sum[i][j] * scale : -INFINITY;
          }
      }
      team.team_barrier();
      load(team, keys, v, evaluation, kv_head * head_dim, s, first, n);
      for (int r = rank; r < B; r += threads) {
        float most = largest[r];
        for (int c = 0; c < B; ++c) most = fmaxf(most, scores[r * score_stride + c]);
        // A row that sees nothing yet keeps its zeros.
        keep[r] = most == -INFINITY ? 1.0F : expf(largest[r] - most);
        largest[r] = most;
      }
      team.team_barrier();
      for (int i = rank; i < B * B; i += threads) {
        const int r = i / B;
        float& score = scores[r * score_stride + i % B];
        score = score == -INFINITY ? 0.0F : expf(score - largest[r]);
      }
      team.team_barrier();
      for (int r = rank; r < B; r += threads) {
        float sum = 0.0F;
        for (int c = 0; c < B; ++c) sum += scores[r * score_stride + c];
        sums[r] = ScalarLanes::fma(sums[r], keep[r], sum);
      }
#if defined(__CUDA_ARCH__)
#pragma unroll  // acc stays in registers
#endif
      for (int piece = 0; piece < most_pieces; ++piece) {
        const int index = rank + piece * threads;
        const int column = index % column_groups, row = index / column_groups;
        if (row >= B / 4) continue;
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 4; ++j) acc[piece][i][j] *= keep[row + i * (B / 4)];
        for (int c = 0; c < n; ++c) {
          float p[4], x[4];
          for (int i = 0; i < 4; ++i) p[i] = round_to(scores[(row + i * (B / 4)) * score_stride + c], compute);
          for (int j = 0; j < 4; ++j) {
            const int d = column + j * column_groups;
            x[j] = d < head_dim ? keys[c * stride + d] : 0.0F;
          }
          for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) acc[piece][i][j] = ScalarLanes::fma(p[i], x[j], acc[piece][i][j]);
        }
      }
    }
    team.team_barrier();  // sums of other threads' rows
#if defined(__CUDA_ARCH__)
#pragma unroll  // acc stays in registers
#endif
    for (int piece = 0; piece < most_pieces; ++piece) {
      const int index = rank + piece * threads;
      const int column = index % column_groups, row = index / column_groups;
      if (row >= B / 4) continue;
      for (int i = 0; i < 4; ++i) {
        const int r = row + i * (B / 4);
        if (r >= rows) continue;
        float* const y = out.row(evaluation, s.query_begin + query_of(r)) + column_of(r);
        for (int j = 0; j < 4; ++j)
          if (const int d = column + j * column_groups; d < head_dim) y[d] = acc[piece][i][j] / sums[r];
      }
    }
  }
};

template <class Space, int B>
void run_attention(const typename Space::Exec& exec, const Attention<Space, B>& attention, int tile_count) {
  static_assert(sizeof(attention) <= most_kernel_bytes);
  using Policy = Kokkos::TeamPolicy<typename Space::Exec>;
  Policy policy(exec, tile_count * attention.q.evaluations * attention.kv_heads, Space::team_threads);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(Attention<Space, B>::scratch_bytes(attention.head_dim))));
  Kokkos::parallel_for("distzo2::device::attention", policy, attention);
}

}  // namespace detail

/// As core/kernels/attention.hpp, with spans and tiles (of device_attention_rows rows) in the memory that computes. out
/// may be q. A row's bits depend on its own query and keys only.
template <class Space>
void attend_rows(const typename Space::Exec& exec, const Rows& out, const Rows& q, const Rows& k, const Rows& v,
                 const AttentionShape& shape, const AttentionSpan* spans, const AttentionTile* tiles, int tile_count,
                 Compute compute) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const int group = shape.heads / shape.kv_heads;
  if (device_attention_rows(shape.head_dim) == 32)
    detail::run_attention<Space, 32>(
        exec, {out, q, k, v, spans, tiles, shape.kv_heads, group, shape.head_dim, scale, compute}, tile_count);
  else
    detail::run_attention<Space, 16>(
        exec, {out, q, k, v, spans, tiles, shape.kv_heads, group, shape.head_dim, scale, compute}, tile_count);
}

}  // namespace distzo2
