// SPDX-License-Identifier: BSD-3-Clause
#include "core/panels.hpp"
#include "core/parameter_store.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/random_order_device.hpp"
#include "tests/support/small_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace distzo2 {
namespace {

// Parameters in a device's memory, through whatever order its lanes may take, keep the bits that they have on the host.

ModelConfig model(bool tied) {
  ModelConfig c = small_model(FamilyKind::opt, tied);
  c.layers = 5;
  return c;
}

/// Kernels of the fake device: the host's update, done when the compute lane comes to it.
class LateUpdates final : public PendingUpdates {
public:
  explicit LateUpdates(RandomOrderDevice& device) : device_(device) {}
  void apply_pending(const Weight& weight) override {
    Weight w = weight;
    w.data = RandomOrderDevice::real(w.data);
    device_.compute([w, records = std::vector<StepRecord>(w.pending.begin(), w.pending.end())]() mutable {
      w.pending = records;
      ThreadPanels buffers;
      buffers.theta.resize(chunk_elements);
      buffers.scratch.resize(chunk_elements);
      for (std::int64_t at = 0; at < w.rows * w.cols; at += chunk_elements)
        bring_up_to_date(w, at, std::min(chunk_elements, w.rows * w.cols - at), buffers);
    });
  }

private:
  RandomOrderDevice& device_;
};

constexpr Tiers places[] = {{"resident", Tier::resident, true, false, 2, 1},
                            {"host", Tier::host, true, false, 2, 1},
                            {"host, three buffers, two blocks resident", Tier::host, true, false, 3, 1, 2},
                            {"host in groups, written back every 4", Tier::host, true, true, 2, 4},
                            {"disk", Tier::disk, true, false, 2, 1},
                            {"disk in groups, three buffers, written back every 4", Tier::disk, true, true, 3, 4}};

struct StoreResult {
  std::vector<std::uint64_t> digests;
  std::vector<float> rows;  // looked up in a streamed embedding
  double realised = 0, noise = 0;
};

/// A pass that multiplies nothing: each tensor is opened as a forward pass opens it, and brought up to date.
void pass(ParameterStore& store, int head_matrix) {
  const TensorTable& table = store.table();
  const auto is_streamed_table = [&](int i) {
    return store.streams_tensor(i) && !is_decoder(table, table.tensors[static_cast<std::size_t>(i)].block);
  };
  store.begin_pass(head_matrix);
  store.update_streamed_table();
  for (int b = 0; b < std::ssize(table.blocks); ++b) {
    store.open_block(b);
    store.apply_pending_vectors(b);
    const Block& block = table.blocks[static_cast<std::size_t>(b)];
    for (int i = block.tensor_begin; i < block.tensor_end; ++i) {
      if (!table.tensors[static_cast<std::size_t>(i)].matrix || i == head_matrix || is_streamed_table(i)) continue;
      const bool group = store.placement().groups && is_decoder(table, b);
      if (group) store.open_matrix(i);
      store.apply_pending_matrix(i);
      if (group) store.close_matrix(i);
    }
    store.close_block(b);
  }
  for (const int unit : store.units_of(head_matrix)) {
    store.open(unit);
    const Weight w = store.rows_in(head_matrix, unit);
    if (store.first_row(head_matrix, unit) == 0) store.sample_rounding_of(w);
    store.apply_pending(w);
    store.absorbed_rows(head_matrix, unit);
    store.close(unit);
  }
  store.end_pass();
}

StoreResult run(const ModelConfig& config, const UpdateRule& rule, const Tiers& tiers, RandomOrderDevice* device) {
  const TensorTable table = tensor_table(config);
  const Placement placement = place(table, rule.storage, tiers);
  MemoryStorage disk(placement.chunks);
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  ParameterStore store(table, rule, *arena, placement, &disk, {}, device);
  std::unique_ptr<LateUpdates> updates;
  if (device != nullptr) {
    updates = std::make_unique<LateUpdates>(*device);
    store.apply_with(*updates);
  }
  import_random(store);
  const int head = config.tied_head ? token_table : table.blocks.back().tensor_begin;
  StoreResult result;
  for (std::uint32_t t = 0; t < 9; ++t) {
    pass(store, head);
    if (t % 4 == 3) {
      pass(store, head);  // as an evaluation does
      result.digests.push_back(store.digest());
    }
    store.append({t, 1e-2, 0.1F, {1e-2F * static_cast<float>(t + 1)}, {1.0}, {1.0}, {1.0, 1.0}});
  }
  result.digests.push_back(store.digest());
  result.rows.resize(100);
  store.read(token_table, 1234, result.rows);
  store.apply_pending();
  result.digests.push_back(store.digest());
  result.realised = store.rounding().realised_share();
  result.noise = store.rounding().accumulated_noise();
  return result;
}

void expect_bits_of_the_host(bool tied, const UpdateRule& rule) {
  for (const Tiers& tiers : places) {
    const StoreResult expected = run(model(tied), rule, tiers, nullptr);
    ASSERT_EQ((std::set(expected.digests.begin(), expected.digests.end()).size()), 3U);  // the last two are equal
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      RandomOrderDevice device(seed);
      const StoreResult result = run(model(tied), rule, tiers, &device);
      EXPECT_EQ(result.digests, expected.digests) << tiers.name << ", seed " << seed;
      EXPECT_EQ(result.rows, expected.rows) << tiers.name;
      EXPECT_EQ(result.realised, expected.realised) << tiers.name;
      EXPECT_EQ(result.noise, expected.noise) << tiers.name;
    }
  }
}

TEST(DeviceStore, keeps_the_bits_of_the_host_in_fp32) {
  expect_bits_of_the_host(true, {3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1});
}

TEST(DeviceStore, keeps_the_bits_of_the_host_in_16_bits) {
  expect_bits_of_the_host(false, {3, DirectionKind::gaussian, Storage::bf16, Rounding::stochastic, 1});
  expect_bits_of_the_host(true, {3, DirectionKind::rademacher, Storage::fp16, Rounding::stochastic, 4});
}

TEST(DeviceStore, looks_up_rows_of_a_streamed_embedding) {
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const ModelConfig config = model(true);
  const TensorTable table = tensor_table(config);
  RandomOrderDevice device(1);
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  ParameterStore store(table, rule, *arena, place(table, rule.storage, places[1]), nullptr, {}, &device);
  std::vector<float> values(static_cast<std::size_t>(table.tensors[token_table].size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  store.import_values(token_table, 0, values);
  const std::vector<std::int32_t> ids{7, 299, 7, 0};
  const Weight w = store.gather_rows(token_table, ids);
  std::vector<float> rows(ids.size() * 64);
  device.get(reinterpret_cast<std::byte*>(rows.data()), w.data, rows.size() * sizeof(float));
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = 0; j < 64; ++j)
      EXPECT_EQ(rows[i * 64 + j], static_cast<float>(ids[i] * 64) + static_cast<float>(j));
}

TEST(DeviceStore, counts_the_spans_of_the_device) {
  const UpdateRule rule{3, DirectionKind::gaussian, Storage::fp32, Rounding::stochastic, 1};
  const TensorTable table = tensor_table(model(false));
  RandomOrderDevice device(1);
  LateUpdates updates(device);
  const std::unique_ptr<HostArena> arena = make_kokkos_arena();
  const Placement placement = place(table, rule.storage, places[1]);
  ParameterStore store(table, rule, *arena, placement, nullptr, {}, &device);
  store.apply_with(updates);
  store.append({0, 1e-2, 0.1F, {1e-2F}, {1.0}, {1.0}, {1.0, 1.0}});
  pass(store, table.blocks.back().tensor_begin);
  store.pipeline()->drain();
  std::vector<LaneSpan> spans;
  store.pipeline()->take_spans(spans);
  std::uint64_t streamed = 0, down = 0;
  for (const Unit& u : placement.units) streamed += placement.streams(u) ? u.bytes : 0;
  for (const LaneSpan& s : spans) {
    down += s.lane == LaneKind::download ? s.bytes : 0;
    EXPECT_NE(s.lane, LaneKind::read);
  }
  EXPECT_EQ(down, streamed);  // every unit was written back, each once
}

}  // namespace
}  // namespace distzo2
