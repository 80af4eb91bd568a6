// SPDX-License-Identifier: BSD-3-Clause
#include "core/tensor_table.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstdint>
#include <limits>

namespace distzo2 {
namespace {

TEST(TensorTable, starts_blocks_and_their_vectors_at_multiples_of_4096) {
  const TensorTable table =
      make_tensor_table({{{"embedding", 100, 50, true}},
                         {{"bias", 1, 7, false}, {"a", 64, 64, true}, {"norm", 1, 3, false}, {"b", 2, 3, true}},
                         {{"final", 1, 5, false}}});
  ASSERT_EQ(table.tensors.size(), 6U);
  // Matrices first, each list in its own order; 100 * 50 = 5000 indices, so the first vectors could start at 8192.
  EXPECT_EQ(table.tensors[0].first, 0);
  EXPECT_EQ(table.tensors[1].name, "a");
  EXPECT_EQ(table.tensors[1].first, 8192);
  EXPECT_EQ(table.tensors[2].name, "b");
  EXPECT_EQ(table.tensors[2].first, 8192 + 4096);
  EXPECT_EQ(table.tensors[3].name, "bias");
  EXPECT_EQ(table.tensors[3].first, 8192 + 8192);
  EXPECT_EQ(table.tensors[4].name, "norm");
  EXPECT_EQ(table.tensors[4].first, 8192 + 8192 + 7);
  EXPECT_EQ(table.tensors[5].first, 20480);
  EXPECT_EQ(table.tensors[5].block, 2);
  EXPECT_FALSE(table.tensors[5].matrix);

  ASSERT_EQ(table.blocks.size(), 3U);
  EXPECT_EQ(table.blocks[1].first, 8192);
  EXPECT_EQ(table.blocks[1].vectors_first, 16384);
  EXPECT_EQ(table.blocks[1].end, 16384 + 10);
  EXPECT_EQ(table.blocks[1].tensor_begin, 1);
  EXPECT_EQ(table.blocks[1].tensor_end, 5);
  EXPECT_EQ(table.blocks[0].vectors_first, 8192);
  EXPECT_EQ(table.blocks[0].end, 8192);
  EXPECT_EQ(table.blocks[2].vectors_first, 20480);
  EXPECT_EQ(table.parameters, 5000 + 4096 + 6 + 7 + 3 + 5);
  EXPECT_EQ(table.index_end, 20485);
}

TEST(TensorTable, finds_tensors_by_name) {
  const TensorTable table = make_tensor_table({{{"x", 2, 2, true}}, {{"y", 1, 2, false}}});
  EXPECT_EQ(find_tensor(table, "y"), 1);
  EXPECT_EQ(find_tensor(table, "z"), -1);
}

TEST(TensorTable, has_a_decay_mask_of_the_runs_of_decayed_indices) {
  const TensorTable table = make_tensor_table(
      {{{"a", 100, 50, true}, {"b", 2, 3, true}, {"norm", 1, 3, false}}, {{"c", 4, 4, true}, {"bias", 1, 7, false}}});
  const unsigned char runs[32] = {0, 0,    0, 0, 0, 0, 0, 0, 0x8E, 0x13, 0, 0, 0, 0, 0, 0,   // 0 to 5006
                                  0, 0x30, 0, 0, 0, 0, 0, 0, 0x10, 0x30, 0, 0, 0, 0, 0, 0};  // 12288 to 12304
  EXPECT_EQ(decay_mask_digest(table), XXH3_64bits(runs, sizeof runs));
  // The same mask in other tensors, and other masks.
  const auto of = [](const TensorSpec& first, bool last) {
    return decay_mask_digest(make_tensor_table({{first, {"norm", 1, 3, false}}, {{"c", 8, 2, last}}}));
  };
  EXPECT_EQ(of({"a", 1, 5006, true}, true), decay_mask_digest(table));
  EXPECT_NE(of({"a", 1, 5005, true}, true), decay_mask_digest(table));
  EXPECT_NE(of({"a", 1, 5006, true}, false), decay_mask_digest(table));
  EXPECT_NE(of({"a", 1, 5006, false}, true), decay_mask_digest(table));
}

TEST(TensorTable, refuses_shapes_that_would_wrap) {
  std::int64_t const huge = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_THROW(make_tensor_table({{{"x", huge, 3, true}}}), Error);
  EXPECT_THROW(make_tensor_table({{{"x", 0, 3, true}}}), Error);
  EXPECT_THROW(make_tensor_table({{{"x", std::int64_t{1} << 28, std::int64_t{1} << 28, true}, {"y", 1, 1, true}}}),
               Error);
}

}  // namespace
}  // namespace distzo2
