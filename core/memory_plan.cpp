// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory_plan.hpp"

#include "core/error.hpp"
#include "core/lane_trace.hpp"
#include "core/node_reads.hpp"
#include "core/round_up.hpp"
#include "core/unit_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace distzo2 {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

std::uint64_t sum_of(const std::vector<MemoryTerm>& terms, MemoryPlace place) {
  std::uint64_t total = 0;
  for (const MemoryTerm& t : terms) total += t.place == place ? t.bytes : 0;
  return total;
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// As a deck would have it, rounded up, so that the value that a message names is enough.
std::string enough_text(std::uint64_t bytes) {
  const std::uint64_t whole = (bytes + mib - 1) / mib;
  if (whole < 10240) return std::to_string(whole) + " MiB";
  const std::uint64_t tenths = (whole * 10 + 1023) / 1024;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

/// As a deck gave it, "130.6 MiB"; what is no such amount is rounded down: less than what would be enough.
std::string given_text(std::uint64_t bytes) {
  constexpr std::array<std::pair<const char*, double>, 4> units{
      {{"GiB", 1073741824.0}, {"GB", 1e9}, {"MiB", 1048576.0}, {"MB", 1e6}}};
  for (int digits = 0; digits < 3; ++digits)
    for (const auto& [unit, size] : units) {
      std::array<char, 64> text{};
      std::snprintf(text.data(), text.size(), "%.*f", digits, static_cast<double>(bytes) / size);
      if (static_cast<std::uint64_t>(std::strtod(text.data(), nullptr) * size) == bytes)
        return std::string(text.data()) + " " + unit;
    }
  return std::to_string(bytes / mib) + " MiB";
}

struct Attempt {
  bool groups;
  int buffers;
};

/// Ways to stream, the one preferred first. The third buffer is written back while one computes and one is filled.
std::vector<Attempt> attempts(const MemoryBudgets& b) {
  std::vector<Attempt> list;
  for (const bool groups : {false, true})
    for (const int buffers : {3, 2})
      if (b.groups.value_or(groups) == groups && b.buffers.value_or(buffers) == buffers)
        list.push_back({groups, buffers});
  return list;
}

bool uses(const Placement& p, Tier tier) {
  return std::ranges::any_of(p.units, [=](const Unit& u) { return u.tier == tier; });
}

/// One way to cut a model and how its units are put on tiers.
class Placer {
public:
  Placer(const TensorTable& table, const Workload& work, const ChunkTable& chunks, Attempt attempt, Machine machine)
      : table_(table),
        work_(work),
        chunks_(chunks),
        device_(machine == Machine::device),
        p_(make_units(table, chunks, attempt.groups)) {
    p_.buffers = attempt.buffers;
    p_.staging = machine != Machine::host;
    const int last = static_cast<int>(table.blocks.size()) - 1;
    for (int b = 1; b < last; ++b) decoders_.push_back(b);
    embedding_ = units_of(0, 0);
    if (!work.model.tied_head) head_ = units_of(last, table.blocks.back().tensor_begin);
  }

  /// What the fast memory holds of parameters, for this rank.
  std::uint64_t fast_bytes() {
    size_buffers(p_);
    return part_of(Tier::resident) + buffer_bytes() + shared_read_bytes() + (device_ ? 0 : gathered_bytes()) +
           (p_.staging ? 0 : streaming_bytes() - covered_bytes());
  }
  /// What the host holds of them beside that.
  std::uint64_t host_bytes() {
    size_buffers(p_);
    return part_of(Tier::host) + bounce_bytes() + (device_ ? gathered_bytes() : 0) +
           (p_.staging ? streaming_bytes() - covered_bytes() : 0);
  }

  /// Puts all that may stream on `slow`, then as much of it on `fast` as `fits` takes: all, else a tied embedding
  /// (which every pass streams whole), decoder blocks spread evenly, an untied head, an untied embedding (of which a
  /// pass needs a few rows). False where not even the rest fits.
  template <class Fits>
  bool fill(Tier fast, Tier slow, Fits&& fits) {
    std::vector<int> blocks;  // that may still move
    for (const int b : decoders_)
      if (p_.units[first_unit(b)].tier != Tier::resident || fast == Tier::resident) blocks.push_back(b);
    std::vector<std::vector<std::size_t>> tables;
    for (const auto* units : {&embedding_, &head_})
      if (!units->empty() && (p_.units[units->front()].tier != Tier::resident || fast == Tier::resident))
        tables.push_back(*units);
    const auto spread = [&](std::size_t r) {
      for (std::size_t i = 0; i < blocks.size(); ++i)
        set_block(blocks[i], spread_evenly(i, r, blocks.size()) ? fast : slow);
    };
    const auto put = [&](const std::vector<std::size_t>& units, Tier tier) {
      for (const std::size_t u : units) p_.units[u].tier = tier;
    };
    const auto try_table = [&](const std::vector<std::size_t>& units) {
      if (units.empty() || std::ranges::find(tables, units) == tables.end()) return;
      put(units, fast);
      if (!fits()) put(units, slow);
    };

    spread(blocks.size());
    for (const auto& units : tables) put(units, fast);
    if (fits()) return true;
    for (const auto& units : tables) put(units, slow);
    spread(0);
    if (!fits()) return false;
    if (work_.model.tied_head) try_table(embedding_);
    std::size_t r = blocks.size();
    for (spread(r); r > 0 && !fits(); spread(r)) --r;
    try_table(head_);
    try_table(embedding_);
    return true;
  }

  Placement& placement() { return p_; }

  /// What a step is reckoned to take on the tiers chosen.
  WriteBackCost write_back_cost() const {
    const bool bf16 = work_.compute == Compute::bf16;
    const double threads = work_.threads;
    const double flop_per_s = device_ ? device_flop_per_s : threads * (bf16 ? host_bf16_flop_per_s : host_flop_per_s);
    const double variates_per_s = device_ ? device_variates_per_s : threads * host_variates_per_s;
    const double parameters = static_cast<double>(table_.parameters), directions = work_.directions;
    const double flop = 2 * parameters * work_.batch.tokens * work_.batch.evaluations;
    double streamed = 0, read = 0, written = 0;
    for (const Unit& u : p_.units) {
      const auto bytes = static_cast<double>(u.bytes);
      if (p_.streams(u)) streamed += bytes / static_cast<double>(bytes_of(work_.storage));
      if (u.tier != Tier::disk) continue;
      written += bytes;
      read += looked_up(u) ? 0 : bytes;
    }
    // z is made for the evaluations and for one record.
    return {.compute_s = flop / flop_per_s + 2 * directions * parameters / variates_per_s,
            .replay_s = directions * streamed / variates_per_s,
            .read_s = read / disk_bytes_per_s,
            .write_s = written / disk_bytes_per_s};
  }

  /// The plan's placement, its terms and what moves.
  void finish(MemoryPlan& plan) {
    size_buffers(p_);
    const MemoryPlace fast = device_ ? MemoryPlace::device : MemoryPlace::host;
    const auto add = [&](const char* name, std::uint64_t bytes, MemoryPlace place) {
      if (bytes > 0) plan.terms.push_back({name, bytes, place});
    };
    plan.resident_bytes = bytes_on(Tier::resident);
    plan.host_bytes = bytes_on(Tier::host);
    plan.disk_bytes = bytes_on(Tier::disk);
    add(shares() ? "resident parameters, a rank's part" : "resident parameters", part_of(Tier::resident), fast);
    add("buffers of streamed parameters", buffer_bytes(), fast);
    add("units read for all, a rank's part", shared_read_bytes(), MemoryPlace::host);
    add("looked-up rows", gathered_bytes(), MemoryPlace::host);
    add(shares() ? "parameters in host memory, a rank's part" : "parameters in host memory", part_of(Tier::host),
        MemoryPlace::host);
    add("bounce buffers of the disk", bounce_bytes(), MemoryPlace::host);
    add("transfers of the disk store", store_bytes(), MemoryPlace::host);
    add("importing, beyond activations", import_bytes(), MemoryPlace::host);
    add("timeline of the lanes", lane_bytes(), MemoryPlace::host);
    plan.terms.front().bytes -= covered_bytes();
    add_traffic(plan);
    // A new version goes to spare slots: those of a unit that is written and of one that is not durable yet.
    for (const Unit& u : p_.units)
      if (u.tier == Tier::disk) plan.spare_slots = std::max(plan.spare_slots, 2 * (u.chunk_end - u.chunk_begin));
    plan.placement = std::move(p_);
  }

private:
  std::uint64_t bytes_on(Tier tier) const {
    std::uint64_t bytes = 0;
    for (const Unit& u : p_.units) bytes += u.tier == tier ? u.bytes : 0;
    return bytes;
  }
  bool shares() const { return !device_ && work_.sharers > 1; }
  /// What is in memory, divided by the ranks that keep one copy of it.
  std::uint64_t part_of(Tier tier) const {
    return pieces_of(bytes_on(tier), static_cast<std::uint64_t>(shares() ? work_.sharers : 1));
  }
  std::uint64_t buffer_bytes() const {
    return static_cast<std::uint64_t>(p_.buffers) * (p_.buffer_bytes + p_.vector_buffer_bytes);
  }
  /// Units from disk on their way to the ranks of a node.
  std::uint64_t shared_read_bytes() const {
    return shares() ? pieces_of(std::uint64_t{NodeReads::slot_bytes(p_)}, static_cast<std::uint64_t>(work_.sharers))
                    : 0;
  }
  std::uint64_t bounce_bytes() const {
    return p_.staging && uses(p_, Tier::disk) ? 2 * bounce_buffers * std::max(p_.buffer_bytes, p_.vector_buffer_bytes)
                                              : 0;
  }
  /// Rows of an embedding that streams, looked up one by one in fp32.
  std::uint64_t gathered_bytes() const {
    const bool streams = p_.streams(p_.units[embedding_.front()]);
    return streams ? work_.tokens_looked_up * static_cast<std::uint64_t>(table_.tensors.front().cols) * sizeof(float)
                   : 0;
  }

  /// What streaming takes beside buffers, and how much of it the room for the program covers.
  std::uint64_t streaming_bytes() const { return store_bytes() + import_bytes() + lane_bytes(); }
  std::uint64_t covered_bytes() const { return std::min(streaming_bytes(), host_baseline_spare_bytes); }
  std::uint64_t store_bytes() const { return uses(p_, Tier::disk) ? work_.store_bytes : 0; }
  /// A chunk on its way to the disk is whole in memory, one a thread; activations come after that.
  std::uint64_t import_bytes() const {
    std::size_t largest = 0;
    for (const Unit& u : p_.units)
      for (int c = u.chunk_begin; u.tier == Tier::disk && c < u.chunk_end; ++c)
        largest = std::max(largest, chunks_.chunks[at(c)].bytes);
    const std::uint64_t images = static_cast<std::uint64_t>(work_.threads) * largest;
    const std::uint64_t activations = sum_of(work_.host_activations, MemoryPlace::host);
    return images - std::min(images, activations);
  }
  std::uint64_t lane_bytes() const {
    const int lanes = (uses(p_, Tier::disk) ? 2 : 0) + (p_.staging && p_.streams_any() ? 2 : 0);
    return lanes == 0 ? 0 : (static_cast<std::uint64_t>(lanes) + 1) * most_spans * sizeof(LaneSpan);
  }

  void add_traffic(MemoryPlan& plan) const {
    const std::uint64_t every = p_.write_back_every;
    for (const Unit& u : p_.units) {
      if (!p_.streams(u)) continue;
      // Of an untied embedding a pass reads rows, and the whole only when it is its turn to be stored.
      const Traffic t{looked_up(u) ? u.bytes / every : u.bytes, u.bytes / every};
      if (p_.staging) plan.link.read += t.read, plan.link.written += t.written;
      if (u.tier == Tier::disk) plan.disk.read += t.read, plan.disk.written += t.written;
    }
    if (p_.units[embedding_.front()].tier == Tier::disk)
      plan.disk.read +=
          work_.tokens_looked_up * static_cast<std::uint64_t>(table_.tensors.front().cols) * bytes_of(work_.storage);
  }

  /// Of an untied embedding.
  bool looked_up(const Unit& u) const {
    return chunks_.chunks[at(u.chunk_begin)].tensor_begin == token_table && !work_.model.tied_head;
  }
  std::size_t first_unit(int block) const { return at(p_.unit_begin[at(block)]); }
  void set_block(int block, Tier tier) {
    for (int u = p_.unit_begin[at(block)]; u < p_.unit_begin[at(block) + 1]; ++u) p_.units[at(u)].tier = tier;
  }
  std::vector<std::size_t> units_of(int block, int tensor) const {
    std::vector<std::size_t> units;
    for (int u = p_.unit_begin[at(block)]; u < p_.unit_begin[at(block) + 1]; ++u)
      if (chunks_.chunks[at(p_.units[at(u)].chunk_begin)].tensor_begin == tensor) units.push_back(at(u));
    return units;
  }

  const TensorTable& table_;
  const Workload& work_;
  const ChunkTable& chunks_;
  bool device_;
  Placement p_;
  std::vector<int> decoders_;
  std::vector<std::size_t> embedding_, head_;
};

[[noreturn]] void refuse(const char* key, std::uint64_t budget, const std::string& source, std::uint64_t least,
                         const MemoryBudgets& budgets, const Workload& work) {
  std::string advice;
  if (budgets.groups == false) advice += "; memory/groups: auto needs less";
  if (budgets.buffers == 3) advice += "; memory/buffers: 2 needs less";
  if (work.storage == Storage::fp32) advice += "; precision/storage: bf16 halves the parameters";
  throw Error(ExitCode::usage, std::string(key) + ": " + given_text(budget) +
                                   (source == key ? "" : " (" + source + ")") +
                                   " cannot hold what this run needs at least; the smallest that would do is " +
                                   enough_text(least) + advice);
}

}  // namespace

std::uint64_t MemoryPlan::total(MemoryPlace place) const {
  return sum_of(terms, place);
}

MemoryPlan plan_memory(const TensorTable& table, const Workload& work, Machine machine, const MemoryBudgets& budgets) {
  const ChunkTable chunks = make_chunk_table(table, work.storage);
  const bool staging = machine != Machine::host, device = machine == Machine::device;
  MemoryPlan plan;
  plan.machine = machine;
  plan.batch = work.batch;
  plan.host_budget = budgets.host;
  plan.host_source = budgets.host_source;

  // 1. What is needed whatever the placement.
  plan.terms.push_back({"program and data", host_baseline_bytes, MemoryPlace::host});
  const std::vector<MemoryTerm> passes =
      device ? device_terms(work.model, work.compute, work.batch) : work.host_activations;
  plan.terms.insert(plan.terms.end(), passes.begin(), passes.end());
  const std::uint64_t host_fixed = sum_of(plan.terms, MemoryPlace::host);
  const std::uint64_t fast_fixed = !staging ? host_fixed : device ? sum_of(plan.terms, MemoryPlace::device) : 0;

  // 2. The first way to stream that fits.
  const Tier slow = staging ? Tier::host : Tier::disk;
  const std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t least_fast = none, least_host = none;
  for (const Attempt& a : attempts(budgets)) {
    Placer placer(table, work, chunks, a, machine);
    const auto fast_use = [&] { return fast_fixed + placer.fast_bytes(); };
    placer.fill(Tier::resident, slow, [] { return false; });
    least_fast = std::min(least_fast, fast_use());
    plan.device_budget = staging ? budgets.device.value_or(fast_use()) : 0;
    const std::uint64_t fast_budget = staging ? plan.device_budget : budgets.host;
    // Where no budget is given, all streams that may.
    const bool keep = !staging || budgets.device;
    if (keep && !placer.fill(Tier::resident, slow, [&] { return fast_use() <= fast_budget; })) continue;
    // Where the staging copy is made on the host itself, the fast memory is host memory as well.
    const auto host_use = [&] { return host_fixed + placer.host_bytes() + (device ? 0 : placer.fast_bytes()); };
    if (staging && !placer.fill(Tier::host, Tier::disk, [&] { return host_use() <= budgets.host; })) {
      least_host = std::min(least_host, host_use());
      continue;
    }
    Placement& p = placer.placement();
    plan.write_back_cost = uses(p, Tier::disk) ? placer.write_back_cost() : WriteBackCost{};
    p.write_back_every = budgets.write_back_every.value_or(
        uses(p, Tier::disk) ? cheapest_write_back(plan.write_back_cost, work.round_every) : work.round_every);
    // Where few passes write, a third buffer would take the room of what could be resident for nothing.
    if (!budgets.buffers && p.buffers == 3 && p.streams_any() && p.write_back_every > 1) continue;
    placer.finish(plan);
    if (staging) plan.device_source = budgets.device ? budgets.device_source : "the least that works";
    return plan;
  }
  if (least_host != none) refuse("memory/host budget", budgets.host, budgets.host_source, least_host, budgets, work);
  if (staging) refuse("memory/device budget", plan.device_budget, budgets.device_source, least_fast, budgets, work);
  refuse("memory/host budget", budgets.host, budgets.host_source, least_fast, budgets, work);
}

}  // namespace distzo2
