// SPDX-License-Identifier: BSD-3-Clause
#include "core/kernels/attention.hpp"

#include "core/kernels/lanes.hpp"
#include "core/round_up.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace distzo2 {
namespace {

constexpr int key_tile = 64;
constexpr int column_step = 2 * lane_count;

/// One thread's working set.
struct Tile {
  float* q;          // (attention_rows, head_dim)
  float* keys;       // (width, key_tile): transposed, so that scores are vectors over keys
  float* values;     // (key_tile, width)
  float* scores;     // (attention_rows, key_tile)
  float* out;        // (attention_rows, width)
  float* largest;    // (attention_rows): running maximum of a row's scores
  float* sum;        // (attention_rows): running sum of exp(score - largest)
  float* some_keys;  // (lane_count, width): keys on their way into `keys`
  int width;         // head_dim rounded up to whole vectors
};

Tile make_tile(float* memory, int head_dim) {
  const int width = round_up(head_dim, column_step);
  Tile t{};
  t.width = width;
  t.q = memory;
  t.keys = t.q + attention_rows * width;
  t.values = t.keys + width * key_tile;
  t.scores = t.values + key_tile * width;
  t.out = t.scores + attention_rows * key_tile;
  t.largest = t.out + attention_rows * width;
  t.sum = t.largest + attention_rows;
  t.some_keys = t.sum + attention_rows;
  return t;
}

/// c(R, columns) (+)= a(R, depth) * b(depth, columns); every element is one chain of fma over `depth`, whatever R is.
template <int R>
void product_rows(float* c, int ldc, const float* a, int lda, const float* b, int ldb, int depth, int columns,
                  bool add) {
  for (int j = 0; j < columns; j += column_step) {
    Lanes acc[R][2];
    for (int r = 0; r < R; ++r) {
      acc[r][0] = add ? load(c + r * ldc + j) : Lanes{};
      acc[r][1] = add ? load(c + r * ldc + j + lane_count) : Lanes{};
    }
    for (int d = 0; d < depth; ++d) {
      const Lanes b0 = load(b + d * ldb + j);
      const Lanes b1 = load(b + d * ldb + j + lane_count);
      for (int r = 0; r < R; ++r) {
        const Lanes x = broadcast(a[r * lda + d]);
        acc[r][0] = fma(x, b0, acc[r][0]);
        acc[r][1] = fma(x, b1, acc[r][1]);
      }
    }
    for (int r = 0; r < R; ++r) {
      store(c + r * ldc + j, acc[r][0]);
      store(c + r * ldc + j + lane_count, acc[r][1]);
    }
  }
}

void product(float* c, int ldc, const float* a, int lda, const float* b, int ldb, int rows, int depth, int columns,
             bool add) {
  int r = 0;
  for (; r + 4 <= rows; r += 4) product_rows<4>(c + r * ldc, ldc, a + r * lda, lda, b, ldb, depth, columns, add);
  float* const cr = c + r * ldc;
  const float* const ar = a + r * lda;
  if (rows - r == 3) product_rows<3>(cr, ldc, ar, lda, b, ldb, depth, columns, add);
  if (rows - r == 2) product_rows<2>(cr, ldc, ar, lda, b, ldb, depth, columns, add);
  if (rows - r == 1) product_rows<1>(cr, ldc, ar, lda, b, ldb, depth, columns, add);
}

void copy_row(float* out, const float* in, int n, Compute compute) {
  int i = 0;
  for (; i + lane_count <= n; i += lane_count) {
    const Lanes x = load(in + i);
    store(out + i, round_to(x, compute));
  }
  if (i < n) {
    const Lanes x = load_first(in + i, n - i);
    store_first(out + i, round_to(x, compute), n - i);
  }
}

/// Keys of [first, first + n) of the span's key list (prefix, then own range), transposed and zero up to `columns`, and
/// their values.
void load_keys(const Tile& t, const Rows& k, const Rows& v, int evaluation, const AttentionSpan& s, int kv_column,
               int head_dim, int first, int n, int columns, Compute compute) {
  const int prefix = s.prefix_end - s.prefix_begin;
  for (int begin = 0; begin < columns; begin += lane_count) {
    for (int i = 0; i < lane_count; ++i) {
      const int index = first + begin + i;
      float* const key = t.some_keys + i * t.width;
      if (begin + i >= n) {
        std::fill_n(key, t.width, 0.0F);
        continue;
      }
      const int token = index < prefix ? s.prefix_begin + index : s.query_begin + index - prefix;
      copy_row(key, k.row(evaluation, token) + kv_column, head_dim, compute);
      std::fill(key + head_dim, key + t.width, 0.0F);
      float* const value = t.values + (begin + i) * t.width;
      copy_row(value, v.row(evaluation, token) + kv_column, head_dim, compute);
      std::fill(value + head_dim, value + t.width, 0.0F);
    }
    for (int d = 0; d < t.width; d += lane_count) {
      Lanes block[lane_count];
      for (int i = 0; i < lane_count; ++i) block[i] = load(t.some_keys + i * t.width + d);
      transpose(block);
      for (int i = 0; i < lane_count; ++i) store(t.keys + (d + i) * key_tile + begin, block[i]);
    }
  }
}

/// Scores of one row to exp(score - largest), masked beyond `visible`; rescales what the row has summed up so far.
void softmax_row(const Tile& t, int row, int visible, int columns, float scale, Compute compute) {
  float* const s = t.scores + row * key_tile;
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  for (int j = std::max(0, visible); j < columns; ++j) s[j] = minus_infinity;
  Lanes top = broadcast(minus_infinity);
  for (int j = 0; j < columns; j += lane_count) {
    const Lanes x = load(s + j) * broadcast(scale);
    store(s + j, x);
    top = larger(x, top);
  }
  const float before = t.largest[row];
  const float now = std::max(before, largest(top));
  Lanes sums{};
  for (int j = 0; j < columns; j += lane_count) {
    const Lanes p = exp(load(s + j) - broadcast(now));
    sums += p;
    store(s + j, round_to(p, compute));
  }
  const float keep = exp(broadcast(before - now))[0];
  t.largest[row] = now;
  t.sum[row] = std::fma(t.sum[row], keep, sum(sums));
  if (keep != 1.0F) {
    for (int d = 0; d < t.width; d += lane_count) {
      store(t.out + row * t.width + d, load(t.out + row * t.width + d) * broadcast(keep));
    }
  }
}

}  // namespace

AttentionShape attention_shape(const ModelConfig& config) {
  return {static_cast<int>(config.heads), static_cast<int>(config.kv_heads), static_cast<int>(config.head_dim)};
}

void attention_tiles(std::vector<AttentionTile>& tiles, std::span<const AttentionSpan> spans,
                     const AttentionShape& shape, int rows) {
  const int group = shape.heads / shape.kv_heads;
  tiles.clear();
  for (int i = 0; i < static_cast<int>(spans.size()); ++i) {
    const int span_rows = (spans[i].query_end - spans[i].query_begin) * group;
    for (int r = 0; r < span_rows; r += rows) tiles.push_back({i, r});
  }
  const auto keys = [&](const AttentionTile& t) {
    return spans[t.span].prefix_end - spans[t.span].prefix_begin + (t.first_row + rows) / group;
  };
  std::sort(tiles.begin(), tiles.end(), [&](const AttentionTile& a, const AttentionTile& b) {
    int const ka = keys(a);
    int const kb = keys(b);
    return ka != kb ? ka > kb : a.span < b.span;
  });
}

std::size_t attention_scratch(int head_dim) {
  const int width = round_up(head_dim, column_step);
  return static_cast<std::size_t>(round_up(2 * attention_rows * width + 2 * key_tile * width +
                                               attention_rows * key_tile + 2 * attention_rows + lane_count * width,
                                           64));
}

void attention(const HostExec& exec, const Rows& out, const Rows& q, const Rows& k, const Rows& v,
               const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<const AttentionTile> tiles,
               Compute compute, float* scratch) {
  const int group = shape.heads / shape.kv_heads;
  const int head_dim = shape.head_dim;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  std::size_t const scratch_step = attention_scratch(head_dim);
  const int kv_heads = shape.kv_heads;
  const int units = q.evaluations * kv_heads;
  const auto* const all_spans = spans.data();
  const auto* const all_tiles = tiles.data();
  const Kokkos::Experimental::UniqueToken<HostExec, Kokkos::Experimental::UniqueTokenScope::Global> token;
  using Policy = Kokkos::RangePolicy<HostExec, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Policy policy(exec, 0, static_cast<std::int64_t>(tiles.size()) * units);
  policy.set_chunk_size(1);
  static const std::string name("distzo2::attention");  // a literal would become a string at every call
  Kokkos::parallel_for(name, policy, [=](std::int64_t const work) {
    AttentionTile const part = all_tiles[work / units];
    AttentionSpan const s = all_spans[part.span];
    int const evaluation = static_cast<int>(work % units) / kv_heads;
    int const kv_head = static_cast<int>(work % units) % kv_heads;
    int const prefix = s.prefix_end - s.prefix_begin;
    int const rows = std::min(attention_rows, (s.query_end - s.query_begin) * group - part.first_row);
    auto const query_of = [&](int r) { return (part.first_row + r) / group; };
    auto const column_of = [&](int r) { return (kv_head * group + (part.first_row + r) % group) * head_dim; };

    int const thread = token.acquire();
    Tile const t = make_tile(scratch + static_cast<std::size_t>(thread) * scratch_step, head_dim);
    for (int r = 0; r < rows; ++r) {
      copy_row(t.q + r * t.width, q.row(evaluation, s.query_begin + query_of(r)) + column_of(r), head_dim, compute);
      t.largest[r] = -std::numeric_limits<float>::infinity();
      t.sum[r] = 0.0F;
      std::fill_n(t.out + r * t.width, t.width, 0.0F);
    }
    int const keys = prefix + query_of(rows - 1) + 1;
    for (int first = 0; first < keys; first += key_tile) {
      int const n = std::min(key_tile, keys - first);
      int const columns = round_up(n, column_step);
      load_keys(t, k, v, evaluation, s, kv_head * head_dim, head_dim, first, n, columns, compute);
      product(t.scores, key_tile, t.q, t.width, t.keys, key_tile, rows, head_dim, columns, false);
      for (int r = 0; r < rows; ++r) {
        int const visible = std::min(n, prefix + query_of(r) + 1 - first);
        softmax_row(t, r, visible, columns, scale, compute);
      }
      product(t.out, t.width, t.scores, key_tile, t.values, t.width, rows, n, t.width, true);
    }
    for (int r = 0; r < rows; ++r) {
      float* const y = out.row(evaluation, s.query_begin + query_of(r)) + column_of(r);
      float const sum = t.sum[r];
      for (int d = 0; d < head_dim; ++d) y[d] = t.out[r * t.width + d] / sum;
    }
    token.release(thread);
  });
}

}  // namespace distzo2
