// SPDX-License-Identifier: BSD-3-Clause
#include "core/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/error.hpp"

namespace distzo2 {
namespace {

/// Two blocks with matrices that share a chunk of a digest, a norm, and more chunks than a thread takes at a time.
struct ReplayedStore {
  explicit ReplayedStore(Storage storage, DirectionKind kind)
      : arena(make_kokkos_arena()),
        store(make_tensor_table(
                  {{{"a", 3, 700, true}, {"b", 3, 900, true}, {"n", 1, 70, false}}, {{"c", 90, 1000, true}}}),
              {5, kind, storage, Rounding::stochastic, 2}, *arena) {
    const TensorTable& table = store.table();
    for (int i = 0; i < std::ssize(table.tensors); ++i) {
      std::vector<float> values(static_cast<std::size_t>(table.tensors[static_cast<std::size_t>(i)].size()));
      for (std::size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>((j + 1) % 128) / 128;
      store.import_values(i, 0, values);
    }
  }
  std::unique_ptr<HostArena> arena;
  ParameterStore store;
};

std::vector<StepRecord> records_to_replay() {
  std::vector<StepRecord> records;
  for (std::uint32_t t = 0; t < 7; ++t) {
    const float c = t == 3 ? 0.0F : 0.01F / static_cast<float>(t + 1);
    records.push_back({t, 1e-2, t == 3 ? 0.0F : 0.5F, {c, -c / 3}, {1.0, 1.0}, {1.0, 1.0}, {1.0, 1.0, 1.0, 1.0}});
  }
  return records;
}

TEST(Replay, gives_the_digests_that_a_store_has_after_each_step) {
  const std::vector<StepRecord> records = records_to_replay();
  for (const Storage storage : {Storage::fp32, Storage::bf16, Storage::fp16})
    for (const DirectionKind kind : {DirectionKind::gaussian, DirectionKind::rademacher}) {
      ReplayedStore stepwise(storage, kind);
      std::vector<std::uint64_t> expected{stepwise.store.digest()};
      for (const StepRecord& r : records) {
        stepwise.store.append(r);
        stepwise.store.apply_pending();
        expected.push_back(stepwise.store.digest());
      }
      const ReplayedStore theta0(storage, kind);
      EXPECT_EQ(replayed_digests(theta0.store, records, std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}), expected);
      EXPECT_EQ(replayed_digests(theta0.store, records, std::vector<std::uint32_t>{0, 0, 5}),
                (std::vector{expected[0], expected[0], expected[5]}));
      EXPECT_EQ(replayed_digests(theta0.store, records, std::vector<std::uint32_t>{6}), std::vector{expected[6]});
      EXPECT_TRUE(replayed_digests(theta0.store, records, {}).empty());
    }
}

TEST(Replay, tells_how_far_it_is) {
  const ReplayedStore theta0(Storage::fp32, DirectionKind::gaussian);
  std::vector<std::uint64_t> told;
  replayed_digests(theta0.store, {}, std::vector<std::uint32_t>{0}, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 3U * 700 + 3 * 900 + 70 + 90 * 1000);
    told.push_back(done);
  });
  ASSERT_GE(told.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 94870U);
}

TEST(Replay, refuses_steps_out_of_order_or_beyond_the_records) {
  const ReplayedStore theta0(Storage::fp32, DirectionKind::gaussian);
  const std::vector<StepRecord> records = records_to_replay();
  EXPECT_THROW(replayed_digests(theta0.store, records, std::vector<std::uint32_t>{2, 1}), Error);
  EXPECT_THROW(replayed_digests(theta0.store, records, std::vector<std::uint32_t>{8}), Error);
}

}  // namespace
}  // namespace distzo2
