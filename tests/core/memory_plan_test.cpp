// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/engine.hpp"
#include "core/error.hpp"
#include "core/model_shapes.hpp"

namespace distzo2 {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20, gib = std::uint64_t{1} << 30, gb = 1'000'000'000;

/// ZO2's protocol: fp16, one sequence of 2,048 tokens, both signs, untied embeddings.
Workload zo2_protocol(const std::string& shape) {
  Workload w;
  w.model = model_shape(shape, false);
  w.storage = Storage::fp16;
  w.compute = Compute::fp16;
  w.batch = {2, 2048, 2048};
  w.tokens_looked_up = 2048;
  return w;
}

MemoryPlan plan(const Workload& w, Machine machine, const MemoryBudgets& budgets) {
  return plan_memory(tensor_table(w.model), w, machine, budgets);
}

MemoryPlan on_device(const std::string& shape, const MemoryBudgets& budgets) {
  return plan(zo2_protocol(shape), Machine::device, budgets);
}

int count(const MemoryPlan& p, Tier tier, bool decoders_alone = true) {
  int n = 0;
  for (const Unit& u : p.placement.units)
    n += u.tier == tier && (!decoders_alone || (u.block > 0 && u.block + 2 < std::ssize(p.placement.unit_begin)));
  return n;
}

/// OPT-1.3B by hand: h = 2048, 4 h = 8192, 24 blocks of 12 h^2 + 13 h.
TEST(MemoryPlan, the_table_of_opt_1_3b_is_as_by_hand) {
  MemoryBudgets budgets;
  budgets.host = 64 * gib;
  const MemoryPlan p = on_device("opt-1.3b", budgets);
  const std::map<std::string, std::uint64_t> by_hand{
      {"device context and kernels", 562'036'736},
      {"GEMM workspace", 67'108'864},
      {"perturbed weights of one matrix", 67'108'864},  // 2 signs x 8192 x 2048 x 2 B
      {"residual stream", 33'554'432},                  // 2 x 2048 tokens x 2048 x 4 B
      {"norm outputs and results", 33'554'432},         // the same
      {"q k v, MLP hidden features", 134'217'728},      // 2 x 2048 x 8192 x 4 B
      {"rounded inputs of products", 67'108'864},       // 2 x 2048 x 8192 x 2 B
      {"gathered embedding rows", 33'554'432},          // 2048 x (2048 + 2048) x 4 B
      {"perturbed norms and biases", 212'992},          // 2 x 13 x 2048 x 4 B
      {"rows of the head", 33'554'432},                 // 2 x 2048 x 2048 x 4 B
      {"logits of a chunk", 67'108'864},                //
      {"softmax sums and log-probabilities", 131'072},  // 2 x 2048 x 4 x 8 B
      {"tables of a pass", 196'608},                    // 64 KiB, 2048 tokens x 48 B, 2048 terms x 16 B
      {"resident parameters", 8'413'184},               // 2050 positions x 2048 x 2 B, final norm 2 x 2048 x 4 B
      {"buffers of streamed parameters", 302'309'376},  // 3 x (12 x 2048^2 x 2 B + 13 x 2048 x 4 B)
  };
  std::uint64_t device = 0;
  for (const MemoryTerm& t : p.terms)
    if (t.place == MemoryPlace::device) {
      ASSERT_TRUE(by_hand.contains(t.name)) << t.name;
      EXPECT_EQ(t.bytes, by_hand.at(t.name)) << t.name;
      ++device;
    }
  EXPECT_EQ(device, by_hand.size());
  EXPECT_EQ(p.total(MemoryPlace::device), 1'410'170'880u);
  EXPECT_FALSE(p.placement.groups);
  EXPECT_EQ(p.placement.buffers, 3);
  // A step uploads every block and the head once, and downloads them; of the embedding it uploads what it stores.
  const std::uint64_t block = 100'769'792, table = std::uint64_t{50272} * 2048 * 2;
  EXPECT_EQ(p.link.read, 24 * block + 2 * table);
  EXPECT_EQ(p.link.written, 24 * block + 2 * table);
  EXPECT_EQ(p.disk.read, 0u);
}

TEST(MemoryPlan, a_device_holds_less_than_zo2_reports) {
  const std::map<std::string, double> zo2{{"opt-1.3b", 3.75}, {"opt-2.7b", 4.14}, {"opt-6.7b", 4.99}, {"opt-13b", 6.18},
                                          {"opt-30b", 8.86},  {"opt-66b", 12.07}, {"opt-175b", 18.04}};
  MemoryBudgets budgets;
  budgets.host = 600 * gb;
  budgets.groups = false;
  for (const auto& [shape, reported] : zo2) {
    const double planned = static_cast<double>(on_device(shape, budgets).total(MemoryPlace::device)) / 1e9;
    EXPECT_LT(planned, reported) << shape;
    RecordProperty(shape, std::to_string(planned));
  }
}

TEST(MemoryPlan, groups_hold_opt_175b_in_8_gb) {
  MemoryBudgets budgets;
  budgets.host = 600 * gb;
  budgets.device = 8 * gb;
  const MemoryPlan p = on_device("opt-175b", budgets);
  EXPECT_TRUE(p.placement.groups);
  EXPECT_LE(p.total(MemoryPlace::device), 8 * gb);
  EXPECT_EQ(p.disk_bytes, 0u);
  budgets.groups = false;
  EXPECT_THROW(on_device("opt-175b", budgets), Error);
}

TEST(MemoryPlan, host_memory_is_filled_before_the_disk) {
  MemoryBudgets budgets;
  budgets.host = 400 * gb;
  budgets.device = 70 * gb;
  const MemoryPlan p = on_device("opt-175b", budgets);
  EXPECT_EQ(p.resident_bytes + p.host_bytes + p.disk_bytes, [&] {
    std::uint64_t all = 0;
    for (const Unit& u : p.placement.units) all += u.bytes;
    return all;
  }());
  EXPECT_EQ(p.disk_bytes, 0u);  // 350 GB, some of them on the device
  EXPECT_GT(count(p, Tier::resident), 10);
  EXPECT_LE(p.total(MemoryPlace::device), 70 * gb);
  EXPECT_LE(p.total(MemoryPlace::host), 400 * gb);

  budgets.host = 200 * gb;
  const MemoryPlan less = on_device("opt-175b", budgets);
  EXPECT_GT(count(less, Tier::host), 0);
  EXPECT_GT(count(less, Tier::disk), 0);
  EXPECT_LE(less.total(MemoryPlace::host), 200 * gb);
  EXPECT_EQ(less.placement.write_back_every, 8u);
  EXPECT_LE(less.disk.written, less.disk.read / 8);
  EXPECT_EQ(less.spare_slots, 2 * (less.placement.units.at(3).chunk_end - less.placement.units.at(3).chunk_begin));
}

Workload on_host(const std::string& shape, Storage storage) {
  Workload w;
  w.model = model_shape(shape);
  w.storage = storage;
  w.batch = {2, 64, 64};
  w.tokens_looked_up = 64;
  w.host_activations = {{"activations", 100 * mib, MemoryPlace::host}};
  return w;
}

TEST(MemoryPlan, what_fits_is_resident_and_nothing_streams) {
  MemoryBudgets budgets;
  budgets.host = 2 * gib;
  const MemoryPlan p = plan(on_host("smollm2-135m", Storage::fp32), Machine::host, budgets);
  EXPECT_FALSE(p.placement.streams_any());
  EXPECT_EQ(p.disk_bytes + p.host_bytes, 0u);
  EXPECT_EQ(p.total(MemoryPlace::host), host_baseline_bytes + 100 * mib + p.resident_bytes);
}

TEST(MemoryPlan, ranks_that_share_a_copy_count_a_part_of_it_each) {
  // OPT-1.3B in fp16: 24 blocks, two tables of 50,272 and one of 2,050 rows of 2,048, the final norm: 2.84 GB.
  const std::uint64_t copy = 24 * std::uint64_t{100'769'792} + 2 * std::uint64_t{205'914'112} + 8'413'184;
  Workload w = zo2_protocol("opt-1.3b");
  MemoryBudgets budgets;
  budgets.host = gib;
  EXPECT_GT(plan(w, Machine::host, budgets).disk_bytes, 0u);  // alone it streams
  w.sharers = 4;
  const MemoryPlan p = plan(w, Machine::host, budgets);
  EXPECT_FALSE(p.placement.streams_any());
  EXPECT_EQ(p.resident_bytes, copy);
  const auto term = std::ranges::find(p.terms, "resident parameters, a rank's part", &MemoryTerm::name);
  ASSERT_NE(term, p.terms.end());
  EXPECT_EQ(term->bytes, copy / 4);
  EXPECT_EQ(term->place, MemoryPlace::host);
}

std::map<std::string, std::uint64_t> host_terms(const MemoryPlan& p) {
  std::map<std::string, std::uint64_t> terms;
  for (const MemoryTerm& t : p.terms)
    if (t.place == MemoryPlace::host) terms[t.name] = t.bytes;
  return terms;
}

TEST(MemoryPlan, ranks_that_share_have_buffers_each_and_parts_of_the_rest) {
  // OPT-1.3B in fp16 as above. What may not stream is resident: 2,050 positions and the final norm.
  constexpr std::uint64_t block = 100'769'792, tables = 2 * std::uint64_t{205'914'112}, positions = 8'413'184;
  Workload w = zo2_protocol("opt-1.3b");
  w.sharers = 4;
  MemoryBudgets budgets;
  budgets.host = 2 * gib;
  budgets.groups = false;
  budgets.buffers = 2;
  const auto staged = host_terms(plan(w, Machine::staged_host, budgets));
  EXPECT_EQ(staged.at("resident parameters, a rank's part"), positions / 4);
  EXPECT_EQ(staged.at("buffers of streamed parameters"), 2 * block);
  EXPECT_EQ(staged.at("parameters in host memory, a rank's part"), (24 * block + tables) / 4);
  EXPECT_FALSE(staged.contains("units read for all, a rank's part"));

  // On disk: two units on their way to all of them, of whole pages as they are (24,602 of 4 KiB).
  budgets.write_back_every = 8;
  const auto on_disk = [&](std::uint64_t host) {
    budgets.host = host;
    return plan(w, Machine::host, budgets);
  };
  const MemoryPlan some = on_disk(700 * mib);
  EXPECT_GT(count(some, Tier::resident), 0);
  EXPECT_GT(count(some, Tier::disk), 0);
  EXPECT_EQ(host_terms(some).at("units read for all, a rank's part"), 2 * block / 4);
  EXPECT_EQ(host_terms(some).at("buffers of streamed parameters"), 2 * block);
  EXPECT_EQ(host_terms(some).at("resident parameters, a rank's part"), some.resident_bytes / 4);
  // All of that counts where it is decided what is resident: what it takes is enough for it, and a byte less is not.
  const std::uint64_t taken = some.total(MemoryPlace::host);
  EXPECT_EQ(on_disk(taken).resident_bytes, some.resident_bytes);
  const MemoryPlan less = on_disk(taken - 1);
  EXPECT_LT(less.resident_bytes, some.resident_bytes);
  EXPECT_LT(less.total(MemoryPlace::host), taken);
}

TEST(MemoryPlan, opt_6_7b_streams_from_disk_within_4_gib) {
  MemoryBudgets budgets;
  budgets.host = 4 * gib;
  budgets.write_back_every = 8;
  const MemoryPlan p = plan(on_host("opt-6.7b", Storage::bf16), Machine::host, budgets);
  EXPECT_LE(p.total(MemoryPlace::host), 4 * gib);
  EXPECT_FALSE(p.placement.groups);
  EXPECT_EQ(p.placement.buffers, 2);
  EXPECT_EQ(p.placement.write_back_every, 8u);
  // 4 GiB less 228 MiB, two buffers of 384.2 MiB and 16 MiB of positions leave 3,083 MiB: the tied embedding of 392.8
  // MiB and 7 blocks of 384.2 MiB, less than one more.
  EXPECT_EQ(count(p, Tier::resident), 7);
  EXPECT_EQ(count(p, Tier::disk), 25);
  EXPECT_EQ(p.disk.read, p.disk_bytes);
  EXPECT_EQ(p.disk.written, p.disk_bytes / 8);
}

TEST(MemoryPlan, resident_blocks_are_spread_evenly) {
  MemoryBudgets budgets;
  budgets.host = 4 * gib;
  budgets.write_back_every = 8;
  const MemoryPlan p = plan(on_host("opt-6.7b", Storage::bf16), Machine::host, budgets);
  int streamed = 0;
  for (const Unit& u : p.placement.units) {
    if (u.block == 0 || u.block + 2 >= std::ssize(p.placement.unit_begin)) continue;
    streamed = u.tier == Tier::disk ? streamed + 1 : 0;
    EXPECT_LE(streamed, 4);
  }
  std::vector<int> resident;
  for (int i = 0; i < 10; ++i)
    if (spread_evenly(static_cast<std::uint64_t>(i), 3, 10)) resident.push_back(i);
  EXPECT_EQ(resident, (std::vector<int>{3, 6, 9}));
}

TEST(MemoryPlan, groups_serve_where_whole_blocks_do_not_fit) {
  Workload w = on_host("opt-6.7b", Storage::bf16);
  MemoryBudgets budgets;
  budgets.host = 800 * mib;  // 228 MiB, and two buffers of 384 MiB would be 996; two of a matrix of 128 MiB are 500
  const MemoryPlan p = plan(w, Machine::host, budgets);
  EXPECT_TRUE(p.placement.groups);
  EXPECT_GT(p.placement.vector_buffer_bytes, 0u);
  EXPECT_LE(p.total(MemoryPlace::host), 800 * mib);
}

TEST(MemoryPlan, a_budget_too_small_is_refused_with_one_that_does) {
  const auto message = [](const Workload& w, Machine machine, const MemoryBudgets& budgets) {
    try {
      plan(w, machine, budgets);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::usage);
      return std::string(e.what());
    }
    return std::string();
  };
  const auto smallest = [](const std::string& text) {
    const std::size_t from = text.find("would do is ") + 12;
    EXPECT_EQ(text.substr(text.find(' ', from), 4), " MiB") << text;
    return std::stoull(text.substr(from)) * mib;
  };
  Workload w = on_host("opt-6.7b", Storage::fp32);
  MemoryBudgets budgets;
  budgets.host = 300 * mib;
  budgets.host_source = "SLURM_MEM_PER_NODE, less a tenth";
  const std::string text = message(w, Machine::host, budgets);
  EXPECT_NE(text.find("memory/host budget: 300 MiB (SLURM_MEM_PER_NODE, less a tenth)"), std::string::npos) << text;
  EXPECT_NE(text.find("precision/storage"), std::string::npos) << text;
  budgets.host = smallest(text);
  EXPECT_EQ(message(w, Machine::host, budgets), "");
  budgets.host -= 2 * mib;
  EXPECT_NE(message(w, Machine::host, budgets), "");
  // Just too small: as it was given, not rounded to what would do.
  const std::uint64_t enough = smallest(text) / mib;
  budgets.host_source = "memory/host budget";
  budgets.host = static_cast<std::uint64_t>((static_cast<double>(enough) - 0.9) * static_cast<double>(mib));
  const std::string close = message(w, Machine::host, budgets);
  EXPECT_EQ(close.find("memory/host budget: " + std::to_string(enough - 1) + ".1 MiB cannot hold"), 0U) << close;
  EXPECT_EQ(smallest(close), enough * mib);
  budgets.host -= 12345;  // no amount that a deck would give
  EXPECT_EQ(message(w, Machine::host, budgets).find("memory/host budget: " + std::to_string(enough - 1) + " MiB"), 0U);
  budgets.host = 300'000'000;
  EXPECT_EQ(message(w, Machine::host, budgets).find("memory/host budget: 300 MB cannot hold"), 0U);

  budgets.host = 64 * gib;
  budgets.device = 100 * mib;
  const std::string device = message(w, Machine::staged_host, budgets);
  EXPECT_NE(device.find("memory/device budget: 100 MiB"), std::string::npos) << device;
  budgets.device = smallest(device);
  EXPECT_EQ(message(w, Machine::staged_host, budgets), "");
  budgets.host = 300 * mib;
  EXPECT_NE(message(w, Machine::staged_host, budgets).find("memory/host budget"), std::string::npos);
}

TEST(MemoryPlan, a_staged_host_fills_device_budget_then_host_then_disk) {
  Workload w = on_host("opt-125m", Storage::fp32);
  MemoryBudgets budgets;
  budgets.host = 2 * gib;
  budgets.device = 200 * mib;
  const MemoryPlan p = plan(w, Machine::staged_host, budgets);
  EXPECT_GT(p.resident_bytes, 0u);
  EXPECT_GT(p.host_bytes, 0u);
  EXPECT_EQ(p.disk_bytes, 0u);
  EXPECT_TRUE(p.placement.staging);
  EXPECT_EQ(p.placement.buffers, 3);
  EXPECT_EQ(p.placement.write_back_every, 1u);
  budgets.host = 700 * mib;
  const MemoryPlan less = plan(w, Machine::staged_host, budgets);
  EXPECT_GT(less.disk_bytes, 0u);
  EXPECT_LE(less.total(MemoryPlace::host), 700 * mib);
  budgets.device.reset();
  budgets.host = 2 * gib;
  EXPECT_EQ(count(plan(w, Machine::staged_host, budgets), Tier::resident), 0);
}

TEST(MemoryPlan, stores_as_often_as_pays) {
  Workload w = on_host("opt-6.7b", Storage::bf16);
  MemoryBudgets budgets;
  budgets.host = 4 * gib;
  w.compute = Compute::bf16;
  w.threads = 2;
  w.batch.tokens = 2048;  // 2 x 6.66e9 x 4,096 at 4e11 a second: computing bounds, and a record more costs 1.5 %
  const MemoryPlan computing = plan(w, Machine::host, budgets);
  EXPECT_NEAR(computing.write_back_cost.compute_s, 136.4 + 6.66, 1);
  EXPECT_LT(computing.write_back_cost.read_s + computing.write_back_cost.write_s, 20);
  EXPECT_LE(computing.placement.write_back_every, 3U);
  w.threads = 64;
  w.batch.tokens = 64;  // and now the disk
  EXPECT_EQ(plan(w, Machine::host, budgets).placement.write_back_every, 8U);
  w.round_every = 3;
  EXPECT_EQ(plan(w, Machine::host, budgets).placement.write_back_every, 9U);
  // What lies in host memory is stored at every rounding point.
  budgets.host = 64 * gib;
  EXPECT_EQ(plan(w, Machine::staged_host, budgets).placement.write_back_every, 3U);
}

TEST(MemoryPlan, keys_of_the_deck_are_obeyed) {
  Workload w = on_host("opt-6.7b", Storage::bf16);
  MemoryBudgets budgets;
  budgets.host = 4 * gib;
  budgets.groups = true;
  budgets.buffers = 3;
  budgets.write_back_every = 24;
  const MemoryPlan p = plan(w, Machine::host, budgets);
  EXPECT_TRUE(p.placement.groups);
  EXPECT_EQ(p.placement.buffers, 3);
  EXPECT_EQ(p.placement.write_back_every, 24u);
}

}  // namespace
}  // namespace distzo2
