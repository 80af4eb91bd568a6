// SPDX-License-Identifier: BSD-3-Clause
// Predictions worked out by hand: round numbers of a model that nobody would train.
#include "core/cost_model.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace distzo2 {
namespace {

constexpr double free_of_cost = 1e30;

/// A tied embedding of 1000 elements and four blocks of one matrix with 250.
ModelConfig some_model() {
  ModelConfig model;
  model.hidden = 10;
  model.layers = 4;
  model.heads = 1;
  model.head_dim = 10;
  model.tied_head = true;
  return model;
}

TensorTable some_table() {
  return make_tensor_table({{{"embedding", 100, 10, true}},
                            {{"a", 25, 10, true}},
                            {{"b", 25, 10, true}},
                            {{"c", 25, 10, true}},
                            {{"d", 25, 10, true}},
                            {{"norm", 1, 10, false}}});
}

/// Sequences of so many tokens, each with a loss term.
StepWork some_work(int tokens, Layout layout) {
  StepWork work;
  work.model = some_model();
  work.tokens_of_sequence = work.terms_of_sequence = tokens;
  work.layout = layout;
  return work;
}

/// All of it in the memory that computes.
MemoryPlan resident_plan() {
  MemoryPlan plan;
  plan.placement.units = {{.block = 0, .bytes = 4000},
                          {.block = 1, .bytes = 1000},
                          {.block = 2, .bytes = 1000},
                          {.block = 3, .bytes = 1000},
                          {.block = 4, .bytes = 1000}};
  return plan;
}

/// The four blocks stream.
MemoryPlan streamed(Tier tier, int buffers) {
  MemoryPlan plan = resident_plan();
  plan.placement.staging = tier == Tier::host;
  plan.placement.buffers = buffers;
  for (Unit& u : plan.placement.units)
    if (u.block >= 1 && u.block <= 4) u.tier = tier;
  (tier == Tier::host ? plan.link : plan.disk) = {4000, 4000};
  return plan;
}

/// Only products take time: 32,000 flop a second.
MachineRates products_alone() {
  MachineRates machine;
  machine.cores = 100;
  machine.gemm_fp32_flop = 32000;
  machine.attention_flop = machine.normals = machine.memory_bytes = free_of_cost;
  return machine;
}

double seconds_of(const StepPrediction& p, const std::string& name) {
  for (const CostTerm& t : p.terms)
    if (t.name == name) return t.seconds;
  return 0;
}
double amount_of(const StepPrediction& p, const std::string& name) {
  for (const CostTerm& t : p.terms)
    if (t.name == name) return t.amount;
  return 0;
}

TEST(CostModel, adds_up_the_terms_of_computing) {
  // 20 tokens are two tiles of 16 rows; 2 evaluations.
  //   products     2 * 2 * 2000 * 32                 = 256,000 flop
  //   attention    2 * 2 * 1 * 4 * 10 * 20^2         =  64,000 flop
  //   z            2000 for both signs, 2000 for the record
  //   weights      2000 * (4 + 2 * 4) + 2000 * 4     =  32,000 B
  //   activations  8 * 4 * 2 * 32 * 4 * 10           =  81,920 B
  MachineRates machine;
  machine.gemm_fp32_flop = 128000;    // 2 s
  machine.attention_flop = 64000;     // 1 s
  machine.normals = 1000;             // 4 s
  machine.memory_bytes = 113920 / 4;  // 4 s together
  const StepPrediction p = predict_step(some_table(), resident_plan(), some_work(20, {}), machine);
  EXPECT_DOUBLE_EQ(seconds_of(p, "products"), 2);
  EXPECT_DOUBLE_EQ(seconds_of(p, "attention"), 1);
  EXPECT_DOUBLE_EQ(seconds_of(p, "z"), 4);
  EXPECT_DOUBLE_EQ(amount_of(p, "weights"), 32000);
  EXPECT_DOUBLE_EQ(amount_of(p, "activations"), 81920);
  EXPECT_DOUBLE_EQ(p.step_s, 11);
  EXPECT_EQ(p.longest, Bound::compute);
  EXPECT_DOUBLE_EQ(p.tokens_per_s(), 20.0 / 11);
  EXPECT_EQ(p.ranks, 1);
}

TEST(CostModel, counts_z_of_directions_and_records) {
  const MachineRates machine = products_alone();
  StepWork work = some_work(20, {1, 1, PertpOrder::inner, 4, 1});
  work.directions = 2;  // central, 4 evaluations: 2 * 2000 for them, 2 * 2000 for the record
  EXPECT_DOUBLE_EQ(amount_of(predict_step(some_table(), resident_plan(), work, machine), "z"), 8000);
  work.layout.pertp = 2;  // each rank has both signs of one direction, and applies both to its half of theta
  EXPECT_DOUBLE_EQ(amount_of(predict_step(some_table(), resident_plan(), work, machine), "z"), 2000 + 2 * 2000 / 2);
  work.layout = {3, 1, PertpOrder::inner, 3, 1};
  work.difference = Difference::forward;  // ranks with one evaluation of 0, 1, 2: the clean one needs no z
  EXPECT_DOUBLE_EQ(amount_of(predict_step(some_table(), resident_plan(), work, machine), "z"), 2000 + 2 * 2000 / 3.0);
  // Stored every 5 steps, a block that streams lacks 3 records on average: here half of all bytes stream.
  MachineRates disk = machine;
  disk.disk_mixed_bytes = free_of_cost;
  MemoryPlan plan = streamed(Tier::disk, 2);
  plan.placement.write_back_every = 5;
  EXPECT_DOUBLE_EQ(amount_of(predict_step(some_table(), plan, some_work(20, {}), disk), "z"), 2000 + 2 * 2000);
}

TEST(CostModel, of_staging_is_the_cores_work_or_the_link) {
  // Products: 2 * 2 * 32 * 2000 / 32,000 = 8 s, half of them in the head.
  MachineRates machine = products_alone();
  machine.upload_bytes = 1000;    // 4 s, 1 s a unit, which come while the head is computed
  machine.download_bytes = 2000;  // 2 s
  const StepPrediction computing = predict_step(some_table(), streamed(Tier::host, 2), some_work(20, {}), machine);
  EXPECT_EQ(computing.longest, Bound::cores);
  EXPECT_DOUBLE_EQ(computing.step_s, 8 + 6.0 / 100);
  EXPECT_DOUBLE_EQ(computing.of(Bound::buffers), (4 + 2 + 4.0) / 2);

  machine.upload_bytes = machine.download_bytes = 400;  // 10 s each
  // Three buffers hide all but the longest lane; the two that are filled ahead (5 s) cover the head (4 s).
  const StepPrediction link = predict_step(some_table(), streamed(Tier::host, 3), some_work(20, {}), machine);
  EXPECT_EQ(link.longest, Bound::upload);
  EXPECT_DOUBLE_EQ(link.step_s, 10);
  // Two are filled, computed on and emptied in turn: (10 + 4 + 10) / 2; one of them, 3 s, is filled during the head.
  const StepPrediction two = predict_step(some_table(), streamed(Tier::host, 2), some_work(20, {}), machine);
  EXPECT_EQ(two.longest, Bound::buffers);
  EXPECT_DOUBLE_EQ(two.of(Bound::buffers), 12);
  EXPECT_DOUBLE_EQ(two.fill_and_drain_s, 1);
  EXPECT_DOUBLE_EQ(two.step_s, 13);
}

TEST(CostModel, of_a_disk_moves_reads_and_writes_side_by_side) {
  MachineRates machine = products_alone();
  machine.disk_read_bytes = 1000;
  machine.disk_write_bytes = 500;
  machine.disk_mixed_bytes = 800;
  MemoryPlan plan = streamed(Tier::disk, 3);
  plan.disk = {3000, 1000};  // 1000 of each at 800 B/s, then 2000 at 1000
  EXPECT_DOUBLE_EQ(predict_step(some_table(), plan, some_work(20, {}), machine).of(Bound::disk), 2.5 + 2);
  plan.disk = {1000, 2000};  // 1000 of each, then 1000 at 500
  const StepPrediction p = predict_step(some_table(), plan, some_work(20, {}), machine);
  EXPECT_DOUBLE_EQ(p.of(Bound::disk), 2.5 + 2);
  EXPECT_EQ(p.longest, Bound::compute);
  EXPECT_EQ(p.of(Bound::cores), 0);  // nothing is copied
}

TEST(CostModel, of_a_node_of_devices_uploads_slices_and_gathers) {
  MachineRates machine = products_alone();
  machine.devices = 4;
  machine.gemm_fp32_flop = 64000;
  machine.upload_bytes = machine.download_bytes = 400;
  // 128 tokens are a tile of a device; one evaluation: 2 * 2000 * 128 / 64,000 = 8 s.
  const StepWork work = some_work(128, {2, 2, PertpOrder::inner, 2, 2});
  const StepPrediction whole = predict_step(some_table(), streamed(Tier::host, 2), work, machine);
  EXPECT_FALSE(whole.slices);  // no NVLink: every device uploads all
  EXPECT_DOUBLE_EQ(whole.of(Bound::upload), 10);
  machine.nvlink_bytes = 3000;
  const StepPrediction p = predict_step(some_table(), streamed(Tier::host, 2), work, machine);
  EXPECT_TRUE(p.slices);
  EXPECT_DOUBLE_EQ(p.of(Bound::upload), 2.5);
  EXPECT_DOUBLE_EQ(p.of(Bound::gather), 1);
  EXPECT_DOUBLE_EQ(p.of(Bound::write_back), 2.5);
  EXPECT_DOUBLE_EQ(p.of(Bound::buffers), (2.5 + 1 + 2.5 + 4) / 2);
  // Half of all bytes stream, of which a quarter is this device's to update; all hold the other half.
  EXPECT_DOUBLE_EQ(amount_of(p, "z"), 2000 + 2000 * (0.5 + 0.5 / 4));
  EXPECT_DOUBLE_EQ(amount_of(p, "weights"), 2000 * (4 + 4) + 2000 * 4 * (0.5 + 0.5 / 4));
  EXPECT_DOUBLE_EQ(p.step_s, 8);
  EXPECT_DOUBLE_EQ(p.tokens_per_s(), 32);
  EXPECT_EQ(p.nodes, 1);
}

TEST(CostModel, of_several_nodes_exchanges_losses_and_counts) {
  MachineRates machine = products_alone();
  machine.nodes = 2;
  machine.devices = 2;
  machine.gemm_fp32_flop = 64000;
  machine.network_latency_s = 0.01;
  machine.network_bytes = 4800;
  const StepWork work = some_work(128, {2, 2, PertpOrder::inner, 2, 2});
  const StepPrediction p = predict_step(some_table(), resident_plan(), work, machine);
  EXPECT_EQ(p.nodes, 2);
  EXPECT_DOUBLE_EQ(p.exchange_s, 2 * 0.01 + 8 * 2 * 3 / 4800.0);
  EXPECT_DOUBLE_EQ(p.step_s, 8 + 0.03);
  machine.nodes = 1;
  try {
    predict_step(some_table(), resident_plan(), work, machine);
    ADD_FAILURE() << "4 ranks on 2 devices";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "layout: pertp 2 x ddp 2 = 4 ranks, but the machine has 1 nodes x 2 = 2 devices");
  }
}

TEST(CostModel, ranks_of_a_node_without_devices_share_its_cores) {
  // Each of two ranks has half of 32,000 flop a second, and one evaluation of the two: 8 s as with one rank.
  const StepPrediction p =
      predict_step(some_table(), resident_plan(), some_work(20, {2, 1, PertpOrder::inner, 2, 1}), products_alone());
  EXPECT_EQ(p.ranks_of_node, 2);
  EXPECT_FALSE(p.slices);
  EXPECT_DOUBLE_EQ(p.step_s, 8);
  MachineRates nodes = products_alone();
  nodes.nodes = 2;
  nodes.network_latency_s = 0.01;
  nodes.network_bytes = free_of_cost;
  EXPECT_NEAR(predict_step(some_table(), resident_plan(), some_work(20, {2, 1, PertpOrder::inner, 2, 1}), nodes).step_s,
              4.01, 1e-9);
}

TEST(CostModel, names_the_rates_that_it_lacks) {
  MachineRates machine = products_alone();
  StepWork work = some_work(20, {});
  EXPECT_TRUE(missing_rates(resident_plan(), work, machine).empty());
  const auto missing = missing_rates(streamed(Tier::host, 2), work, machine);
  EXPECT_EQ(missing, (std::vector<double MachineRates::*>{&MachineRates::upload_bytes, &MachineRates::download_bytes}));
  work.compute = Compute::bf16;
  EXPECT_EQ(missing_rates(resident_plan(), work, machine),
            std::vector<double MachineRates::*>{&MachineRates::gemm_bf16_flop});
  EXPECT_THROW(predict_step(some_table(), resident_plan(), work, machine), Error);
}

}  // namespace
}  // namespace distzo2
