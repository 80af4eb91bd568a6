// SPDX-License-Identifier: BSD-3-Clause
#include "core/parameter_store.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <vector>

namespace distzo2 {
namespace {

/// Two blocks: matrices a and b share a chunk, their norm starts at the next multiple of 4,096, and c fills two chunks
/// and a part.
constexpr int a_size = 3 * 700, b_size = 3 * 900, norm_size = 70, c_size = 9 * 1000;
constexpr std::uint64_t norm_first = 8192, c_first = 12288;

struct Store {
  explicit Store(Storage storage)
      : arena(make_kokkos_arena()),
        store(make_tensor_table(
                  {{{"a", 3, 700, true}, {"b", 3, 900, true}, {"n", 1, norm_size, false}}, {{"c", 9, 1000, true}}}),
              {5, DirectionKind::rademacher, storage, Rounding::nearest, 1}, *arena) {
    fill(0, a_size, 0.0F);
    fill(1, b_size, 1.0F);
    fill(2, norm_size, 2.0F);
    fill(3, c_size, 3.0F);
  }
  void fill(int tensor, int size, float first) {
    std::vector<float> values(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) values[static_cast<std::size_t>(i)] = first + static_cast<float>(i % 128) / 128;
    store.import_values(tensor, 0, values);
  }
  std::vector<float> read(int tensor, int size) const {
    std::vector<float> values(static_cast<std::size_t>(size));
    store.read(tensor, 0, values);
    return values;
  }
  std::unique_ptr<HostArena> arena;
  ParameterStore store;
};

std::uint64_t hash(const std::vector<float>& values, std::size_t begin, std::size_t end, std::uint64_t first) {
  return XXH3_64bits_withSeed(values.data() + begin, (end - begin) * sizeof(float), first);
}

/// The definition by hand: each run of one type in pieces of 4,096 indices, seeded by their first index.
std::uint64_t expected_digest(const Store& s) {
  std::vector<float> ab = s.read(0, a_size);
  const std::vector<float> b = s.read(1, b_size), norm = s.read(2, norm_size), c = s.read(3, c_size);
  ab.insert(ab.end(), b.begin(), b.end());  // 4,800 values from index 0
  return hash(ab, 0, 4096, 0) + hash(ab, 4096, 4800, 4096) + hash(norm, 0, norm_size, norm_first) +
         hash(c, 0, 4096, c_first) + hash(c, 4096, 8192, c_first + 4096) + hash(c, 8192, c_size, c_first + 8192);
}

TEST(StoreDigest, is_the_sum_of_the_seeded_hashes_of_chunks) {
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16}) {
    const Store s(storage);
    EXPECT_EQ(s.store.digest(), expected_digest(s));
  }
}

TEST(StoreDigest, is_told_by_block) {
  Store s(Storage::fp32);
  const std::vector<float> c = s.read(3, c_size);
  const std::uint64_t second =
      hash(c, 0, 4096, c_first) + hash(c, 4096, 8192, c_first + 4096) + hash(c, 8192, c_size, c_first + 8192);
  EXPECT_EQ(s.store.block_digests(), (std::vector<std::uint64_t>{expected_digest(s) - second, second}));
}

TEST(StoreDigest, sees_pending_records_as_readers_do) {
  for (const Storage storage : {Storage::fp32, Storage::bf16}) {
    Store s(storage);
    const std::uint64_t before = s.store.digest();
    s.store.append({0, 1.0, 0.0F, {0.5F}, {1.0}, {1.0}, {1.0, 1.0}});
    const std::uint64_t pending = s.store.digest();
    EXPECT_NE(pending, before);
    EXPECT_EQ(pending, expected_digest(s));
    s.store.apply_pending();
    EXPECT_EQ(s.store.digest(), pending);
  }
}

TEST(StoreDigest, sees_the_last_bit_of_the_last_element) {
  Store s(Storage::fp32);
  const std::uint64_t before = s.store.digest();
  const float last = s.read(3, c_size).back();
  s.store.import_values(3, c_size - 1, std::vector{std::nextafter(last, 10.0F)});
  EXPECT_NE(s.store.digest(), before);
}

}  // namespace
}  // namespace distzo2
