// SPDX-License-Identifier: BSD-3-Clause
#include "core/cost_model.hpp"

#include "core/error.hpp"
#include "core/round_up.hpp"
#include "core/step.hpp"
#include "core/workspace.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace distzo2 {
namespace {

std::size_t index_of(Bound b) {
  return static_cast<std::size_t>(b);
}

/// What a rank of the layout computes.
struct RankWork {
  int evaluations = 1;  // e
  int directions = 1;   // k: of which they need z, the most of any rank
  int sequences = 1;    // s
  double rows = 0, head_rows = 0;
};

RankWork rank_work(const StepWork& work, bool device) {
  RankWork r;
  const std::vector<Evaluation> all = step_evaluations(work.difference, work.directions, 1.0);
  for (int rank = 0; rank < work.layout.pertp * work.layout.ddp; ++rank) {
    const Share mine = share(work.layout, rank);
    int directions = 0;
    std::uint32_t last = 0;  // evaluations of a direction are neighbours; 0 is the clean one
    for (int e = mine.evaluations.begin; e < mine.evaluations.end; ++e) {
      const std::uint32_t direction = all[static_cast<std::size_t>(e)].direction;
      directions += direction != last ? 1 : 0;
      last = direction;
    }
    r.evaluations = mine.evaluations.size();
    r.directions = rank == 0 ? directions : std::max(r.directions, directions);
    r.sequences = std::max(rank == 0 ? 1 : r.sequences, mine.sequences.size());
  }
  const int tile = device ? device_row_tile : row_tile;
  const auto whole_tiles = [&](double rows) { return tile * std::ceil(rows / tile); };
  r.rows = whole_tiles(r.sequences * work.tokens_of_sequence);
  r.head_rows = whole_tiles(r.sequences * work.terms_of_sequence);
  return r;
}

/// Elements of matrices by what becomes of them; memory_plan.cpp tells the head in the same way.
struct Elements {
  double blocks = 0, head = 0, looked_up = 0;
};

Elements elements_of(const TensorTable& table, const ModelConfig& model) {
  const int head = model.tied_head ? token_table : table.blocks.back().tensor_begin;
  Elements n;
  for (int i = 0; i < std::ssize(table.tensors); ++i) {
    const Tensor& t = table.tensors[static_cast<std::size_t>(i)];
    if (!t.matrix) continue;
    (i == head ? n.head : t.block == 0 ? n.looked_up : n.blocks) += static_cast<double>(t.size());
  }
  return n;
}

/// How much of the decoder blocks and of the head streams, and in how many units.
struct Streamed {
  int units = 0;
  double blocks = 0, head = 0, all = 0;  // shares of bytes
};

Streamed streamed_of(const TensorTable& table, const Placement& p, const ModelConfig& model) {
  const int head_block = model.tied_head ? 0 : static_cast<int>(table.blocks.size()) - 1;
  double blocks = 0, head = 0, other = 0, blocks_streamed = 0, head_streamed = 0, other_streamed = 0;
  Streamed s;
  for (const Unit& u : p.units) {
    const auto bytes = static_cast<double>(u.bytes), streams = p.streams(u) ? bytes : 0.0;
    const bool decoder = is_decoder(table, u.block);
    (decoder ? blocks : u.block == head_block ? head : other) += bytes;
    (decoder ? blocks_streamed : u.block == head_block ? head_streamed : other_streamed) += streams;
    s.units += streams > 0 && (decoder || u.block == head_block) ? 1 : 0;
  }
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0.0; };
  s.blocks = share(blocks_streamed, blocks);
  s.head = share(head_streamed, head);
  s.all = share(blocks_streamed + head_streamed + other_streamed, blocks + head + other);
  return s;
}

bool slices_of(const MachineRates& machine, int n) {
  return machine.devices > 0 && n > 1 && machine.nvlink_bytes > 0;
}

/// Reads and writes that go side by side as far as both last.
double disk_seconds(const MachineRates& m, double read, double written) {
  const double both = std::min(read, written);
  double s = 0;
  if (both > 0) s += 2 * both / m.disk_mixed_bytes;
  if (read > both) s += (read - both) / m.disk_read_bytes;
  if (written > both) s += (written - both) / m.disk_write_bytes;
  return s;
}

}  // namespace

const char* name_of(Bound bound) {
  static constexpr std::array<const char*, bound_count> names{"upload", "gather", "compute", "write back",
                                                              "disk",   "cores",  "buffers"};
  return names[index_of(bound)];
}

double gemm_flop_of(const MachineRates& machine, Compute compute) {
  return compute == Compute::bf16   ? machine.gemm_bf16_flop
         : compute == Compute::fp16 ? machine.gemm_fp16_flop
                                    : machine.gemm_fp32_flop;
}

int ranks_of_node(const MachineRates& machine, const Layout& layout) {
  const int ranks = layout.pertp * layout.ddp;
  if (machine.devices == 0) return pieces_of(ranks, std::min(ranks, machine.nodes));
  const std::int64_t devices = std::int64_t{machine.nodes} * machine.devices;
  if (ranks > devices)
    throw Error(ExitCode::usage, "layout: pertp " + std::to_string(layout.pertp) + " x ddp " +
                                     std::to_string(layout.ddp) + " = " + std::to_string(ranks) +
                                     " ranks, but the machine has " + std::to_string(machine.nodes) + " nodes x " +
                                     std::to_string(machine.devices) + " = " + std::to_string(devices) + " devices");
  return std::min(ranks, machine.devices);
}

std::vector<double MachineRates::*> missing_rates(const MemoryPlan& plan, const StepWork& work,
                                                  const MachineRates& machine) {
  std::vector<double MachineRates::*> missing;
  const auto need = [&](bool needed, double MachineRates::*rate) {
    if (needed && machine.*rate <= 0) missing.push_back(rate);
  };
  const int n = ranks_of_node(machine, work.layout), ranks = work.layout.pertp * work.layout.ddp;
  need(work.compute == Compute::fp32, &MachineRates::gemm_fp32_flop);
  need(work.compute == Compute::bf16, &MachineRates::gemm_bf16_flop);
  need(work.compute == Compute::fp16, &MachineRates::gemm_fp16_flop);
  need(true, &MachineRates::normals);
  need(true, &MachineRates::memory_bytes);
  need(plan.link.read > 0, &MachineRates::upload_bytes);
  need(plan.link.written > 0, &MachineRates::download_bytes);
  need(ranks > n, &MachineRates::network_bytes);
  need(ranks > n, &MachineRates::network_latency_s);
  need(plan.disk.read > plan.disk.written, &MachineRates::disk_read_bytes);
  need(plan.disk.written > plan.disk.read, &MachineRates::disk_write_bytes);
  need(plan.disk.read > 0 && plan.disk.written > 0, &MachineRates::disk_mixed_bytes);
  return missing;
}

StepPrediction predict_step(const TensorTable& table, const MemoryPlan& plan, const StepWork& work,
                            const MachineRates& machine) {
  if (!missing_rates(plan, work, machine).empty())
    throw Error(ExitCode::internal, "predict_step: the machine lacks rates");

  // 1. Ranks, nodes, and what each rank has of a node.
  StepPrediction p;
  p.ranks = work.layout.pertp * work.layout.ddp;
  p.ranks_of_node = ranks_of_node(machine, work.layout);
  p.nodes = pieces_of(p.ranks, p.ranks_of_node);
  p.slices = slices_of(machine, p.ranks_of_node);
  p.tokens = work.layout.batch * work.tokens_of_sequence;
  const double n = p.ranks_of_node, owned = p.slices ? 1 / n : 1;
  const double of_node = machine.devices > 0 ? 1 : 1 / n;  // of the machine's rates

  // 2. Computing. The head comes after all that streams in a pass, so its time is wanted apart.
  const RankWork rank = rank_work(work, machine.devices > 0);
  const Elements m = elements_of(table, work.model);
  const Streamed streamed = streamed_of(table, plan.placement, work.model);
  const double multiplied = m.blocks + m.head, e = rank.evaluations, q = work.directions;
  const auto stored = static_cast<double>(bytes_of(work.storage)),
             computed = static_cast<double>(bytes_of(work.compute));
  // Of what streams to a share f: records applied, and parts stored (r and v of the header).
  const double shared = machine.devices > 0 ? 1 : 1 / n;
  const auto applied = [&](double f) {
    return (1 - f) * shared + f * owned * (plan.placement.write_back_every + 1.0) / 2;
  };
  const auto kept = [&](double f) { return (1 - f) * shared + f * owned; };
  const auto layers = static_cast<double>(work.model.layers);
  const double gemm = gemm_flop_of(machine, work.compute) * of_node;
  const double attention =
      (machine.attention_flop > 0 ? machine.attention_flop : gemm_flop_of(machine, work.compute)) * of_node;
  const double memory = machine.memory_bytes * of_node, normals = machine.normals * of_node;

  const auto add = [&](Bound lane, const char* name, double amount, const char* unit, double rate) {
    if (amount <= 0) return 0.0;
    p.terms.push_back({lane, name, amount, unit, rate, amount / rate});
    p.seconds[index_of(lane)] += amount / rate;
    return amount / rate;
  };
  add(Bound::compute, "products", 2 * e * (m.blocks * rank.rows + m.head * rank.head_rows), "flop", gemm);
  add(Bound::compute, "attention",
      2 * e * rank.sequences * layers * static_cast<double>(work.model.heads * work.model.head_dim) *
          work.tokens_of_sequence * work.tokens_of_sequence,
      "flop", attention);
  add(Bound::compute, "z", rank.directions * multiplied + q * applied(streamed.all) * (multiplied + m.looked_up),
      "normals", normals);
  add(Bound::compute, "weights",
      multiplied * (stored + e * computed) + kept(streamed.all) * stored * (multiplied + 2 * m.looked_up), "B", memory);
  add(Bound::compute, "activations", 32 * e * rank.rows * layers * static_cast<double>(work.model.hidden), "B", memory);
  const double compute = p.of(Bound::compute);
  const double head = 2 * e * m.head * rank.head_rows / gemm +
                      m.head * (rank.directions + q * applied(streamed.head)) / normals +
                      m.head * (stored + e * computed + kept(streamed.head) * stored) / memory;

  // 3. The other lanes.
  const auto up = static_cast<double>(plan.link.read), down = static_cast<double>(plan.link.written);
  const double upload = add(Bound::upload, "upload", owned * up, "B", machine.upload_bytes * of_node);
  const double gather = add(Bound::gather, "gather", p.slices ? (n - 1) / n * up : 0, "B", machine.nvlink_bytes);
  const double back = add(Bound::write_back, "write back", owned * down, "B", machine.download_bytes * of_node);
  const auto read = static_cast<double>(plan.disk.read), written = static_cast<double>(plan.disk.written);
  const double disk = disk_seconds(machine, read, written);
  if (disk > 0) add(Bound::disk, "disk", read + written, "B", (read + written) / disk);

  // 4. What lanes share.
  const double units = streamed.units, buffers = plan.placement.buffers;
  const double ends = (1 - streamed.head) * head;
  const double read_s = disk > 0 ? disk * read / (read + written) : 0, write_s = disk - read_s;
  const double ahead = upload + gather + read_s, after = back + write_s;  // of all units
  if (machine.devices == 0 && upload + back > 0)
    p.seconds[index_of(Bound::cores)] = compute + (upload + back) * n / machine.cores;
  if (units > 0)
    p.seconds[index_of(Bound::buffers)] =
        (ahead + after + streamed.blocks * (compute - head) + streamed.head * head) / buffers;

  // 5. The step.
  p.longest = static_cast<Bound>(std::ranges::max_element(p.seconds) - p.seconds.begin());
  const double longest = p.of(p.longest);
  if (units > 0)
    p.fill_and_drain_s = p.longest == Bound::compute || p.longest == Bound::cores
                             ? std::max(0.0, ahead / units - ends)
                             : std::max(0.0, ends - (buffers - 1) * longest / units);
  if (p.nodes > 1)
    p.exchange_s = machine.network_latency_s * std::bit_width(static_cast<unsigned>(p.ranks - 1)) +
                   8.0 * work.layout.batch * (work.layout.evaluations + 1) / machine.network_bytes;
  p.step_s = longest + p.fill_and_drain_s + p.exchange_s;
  return p;
}

}  // namespace distzo2
