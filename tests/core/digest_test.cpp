// SPDX-License-Identifier: BSD-3-Clause
#include "core/digest.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace distzo2 {
namespace {

std::vector<float> ramp(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i) * 0.25F - 100.0F;
  }
  return x;
}

TEST(Digest, of_a_chunk_is_the_published_hash_of_its_bytes) {
  // XXH3-64 of no bytes with seed 0, as XXH3's own specification and tests give it.
  EXPECT_EQ(digest_chunk(0, {}), 0x2D06800538D394C2ULL);
  // 1.0F and -2.0F byte by byte.
  const unsigned char bytes[] = {0x00, 0x00, 0x80, 0x3F, 0x00, 0x00, 0x00, 0xC0};
  const float values[] = {1.0F, -2.0F};
  EXPECT_EQ(digest_chunk(8192, values), XXH3_64bits_withSeed(bytes, sizeof bytes, 8192));
}

TEST(Digest, sees_every_bit_and_every_place) {
  auto x = ramp(4096);
  const std::uint64_t digest = digest_chunk(0, x);
  EXPECT_NE(digest, digest_chunk(4096, x));
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x[3000], sizeof bits);
  bits ^= 1U;
  std::memcpy(&x[3000], &bits, sizeof bits);
  EXPECT_NE(digest, digest_chunk(0, x));
}

TEST(Digest, refuses_what_is_not_one_chunk) {
  const auto x = ramp(4097);
  EXPECT_THROW(digest_chunk(0, x), Error);
  EXPECT_THROW(digest_chunk(1, std::span<const float>(x).first(10)), Error);
}

TEST(DigestUpdates, sees_what_becomes_part_of_an_element_and_nothing_else) {
  const StepRecord record{7, 1e-2, 0.1F, {0.5F, -0.25F}, {1.0, 2.0}, {1.0, 2.0}, {3.0, 4.0}};
  const auto digest = [&](auto&& change) {
    std::vector<StepRecord> records{record, record};
    records.back().t = 8;
    change(records.back());
    return digest_updates(records);
  };
  const std::uint64_t same = digest([](StepRecord&) {});
  EXPECT_NE(digest([](StepRecord& r) { r.t = 9; }), same);
  EXPECT_NE(digest([](StepRecord& r) { r.c.back() = std::nextafter(-0.25F, 0.0F); }), same);
  EXPECT_NE(digest([](StepRecord& r) { r.wd = 0.0F; }), same);
  EXPECT_NE(digest([](StepRecord& r) { std::swap(r.c.front(), r.c.back()); }), same);
  EXPECT_EQ(digest([](StepRecord& r) { r.losses.clear(), r.g.clear(); }), same);
  EXPECT_NE(digest_updates(std::vector{record}), digest_updates({}));
}

}  // namespace
}  // namespace distzo2
