// SPDX-License-Identifier: BSD-3-Clause
#include "app/plan_report.hpp"

#include "app/store_place.hpp"
#include "core/chunk_table.hpp"
#include "io/block_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <filesystem>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Units and bytes of a tier.
struct TierRow {
  Tier tier;
  int units = 0, blocks = 0;
  std::uint64_t bytes = 0;
};

std::array<TierRow, 3> tier_rows(const MemoryPlan& plan) {
  std::array<TierRow, 3> rows{{{Tier::resident}, {Tier::host}, {Tier::disk}}};
  const auto& begin = plan.placement.unit_begin;
  for (std::size_t b = 0; b + 1 < begin.size(); ++b)
    for (int i = begin[b]; i < begin[b + 1]; ++i) {
      const Unit& u = plan.placement.units[static_cast<std::size_t>(i)];
      TierRow& row = rows[static_cast<std::size_t>(u.tier)];
      ++row.units;
      row.bytes += u.bytes;
      row.blocks += i == begin[b] && b > 0 && b + 2 < begin.size() ? 1 : 0;
    }
  return rows;
}

/// Where the store will lie, and the room there; a run without a folder of its own yet gets one among `runs`.
struct Scratch {
  fs::path folder;
  FileRoom room;
};

Scratch scratch_of(const PlannedRun& run, const MemoryPlan& plan) {
  const RunConfig& config = run.config;
  Scratch scratch;
  scratch.folder = !config.output.folder.empty()           ? store_folder(config, {config.output.folder})
                   : !config.memory.scratch_folder.empty() ? config.memory.scratch_folder
                                                           : fs::current_path() / "runs";
  if (plan.disk_bytes > 0)
    scratch.room =
        BlockFile::room(scratch.folder, make_chunk_table(run.table, config.precision.storage), plan.spare_slots);
  return scratch;
}

const char* text_of(Machine machine) {
  return machine == Machine::host ? "host" : machine == Machine::staged_host ? "host with staging" : "device";
}

Json traffic_object(const Traffic& t) {
  return {{"read", t.read}, {"written", t.written}};
}

/// Terms that lie in one place, and their sum with what bounds it.
void add_place(std::vector<std::string>& lines, const MemoryPlan& plan, MemoryPlace place, std::uint64_t budget,
               const std::string& source) {
  lines.emplace_back(place == MemoryPlace::device ? "device memory" : "host memory");
  for (const MemoryTerm& t : plan.terms)
    if (t.place == place) lines.push_back(fmt::format("  {:<34} {:>10}", t.name, bytes_text(t.bytes)));
  lines.push_back(
      fmt::format("  {:<34} {:>10} of {} ({})", "all", bytes_text(plan.total(place)), bytes_text(budget), source));
}

std::string stored_text(const Placement& p) {
  return p.write_back_every == 1 ? "step" : fmt::format("{} steps", p.write_back_every);
}

std::string streaming_text(const Placement& p) {
  if (!p.streams_any()) return "nothing streams";
  return fmt::format("streaming by {} through {} buffers of {}, stored every {}",
                     p.groups ? "matrices" : "whole blocks", p.buffers, bytes_text(p.buffer_bytes), stored_text(p));
}

/// Why blocks on disk are stored as often as they are.
std::string write_back_text(const RunConfig& config, const MemoryPlan& plan) {
  const WriteBackCost& c = plan.write_back_cost;
  return fmt::format(
      "stored    every {} ({}): at stated rates computing takes {:.3g} s, {:.3g} s more for each step that a block "
      "lies unstored; the disk at {:.1f} GB/s {:.3g} s to read and {:.3g} s to write all",
      stored_text(plan.placement), config.memory.write_back_every ? "memory/write back every" : "auto", c.compute_s,
      c.replay_s, disk_bytes_per_s / 1e9, c.read_s, c.write_s);
}

}  // namespace

std::vector<std::string> plan_lines(const PlannedRun& run, const MemoryPlan& plan) {
  // 1. Tiers.
  std::vector<std::string> lines{fmt::format("{:<10} {:>7} {:>7} {:>11}", "tier", "blocks", "units", "parameters")};
  for (const TierRow& row : tier_rows(plan))
    lines.push_back(
        fmt::format("{:<10} {:>7} {:>7} {:>11}", name_of(row.tier), row.blocks, row.units, bytes_text(row.bytes)));
  lines.push_back(streaming_text(plan.placement));

  // 2. Terms.
  if (plan.machine == Machine::device)
    add_place(lines, plan, MemoryPlace::device, plan.device_budget, plan.device_source);
  if (plan.machine == Machine::staged_host)
    lines.push_back(fmt::format("device budget {} of parameters and buffers ({})", bytes_text(plan.device_budget),
                                plan.device_source));
  add_place(lines, plan, MemoryPlace::host, plan.host_budget, plan.host_source);

  // 3. What moves, and room for it.
  if (plan.placement.staging && plan.placement.streams_any())
    lines.push_back(fmt::format("step      {} up and {} down between host and {}", bytes_text(plan.link.read),
                                bytes_text(plan.link.written), plan.machine == Machine::device ? "device" : "buffers"));
  if (plan.disk_bytes == 0) return lines;
  const Traffic all = disk_traffic_of_run(run.config, run.data, plan);
  const Scratch scratch = scratch_of(run, plan);
  lines.push_back(fmt::format("step      reads {} from disk, writes {}", bytes_text(plan.disk.read),
                              bytes_text(plan.disk.written)));
  lines.push_back(write_back_text(run.config, plan));
  lines.push_back(fmt::format("run       {} steps: reads {} from disk, writes {}", run.config.zo.steps,
                              bytes_text(all.read), bytes_text(all.written)));
  lines.push_back(fmt::format("scratch   {} needed in {}, {} are free{}", bytes_text(scratch.room.bytes),
                              scratch.folder.string(), bytes_text(scratch.room.free),
                              scratch.room.enough() ? "" : ": not enough"));
  return lines;
}

std::string memory_line(const MemoryPlan& plan) {
  std::string line = bytes_text(plan.resident_bytes + plan.host_bytes + plan.disk_bytes) + " of parameters";
  if (plan.disk_bytes > 0) line += fmt::format(", {} of them on disk", bytes_text(plan.disk_bytes));
  if (plan.machine == Machine::device)
    line += fmt::format("; on the device {} of {} in all", bytes_text(plan.total(MemoryPlace::device)),
                        bytes_text(plan.device_budget));
  return line + fmt::format("; on the host {} of {} in all ({})", bytes_text(plan.total(MemoryPlace::host)),
                            bytes_text(plan.host_budget), plan.host_source);
}

std::vector<std::string> notes_of_memory(const RunConfig& config, const MemoryPlan& plan) {
  std::vector<std::string> notes;
  if (const std::string note = host_budget_note(config, machine_memory_sources()); !note.empty()) notes.push_back(note);
  if (config.parallel.slices == Slices::off && !config.parallel.shared_memory_folder.empty())
    notes.push_back("parallel/shared memory folder: parallel/slices is off, so that it changes nothing");
  if (plan.placement.streams_any()) return notes;
  const auto add = [&](bool given, const char* key, const char* what) {
    if (given) notes.push_back(fmt::format("{}: all parameters stay in memory and nothing streams, so {}", key, what));
  };
  add(config.memory.groups.has_value(), "memory/groups", "that it changes nothing");
  add(config.memory.write_back_every.has_value(), "memory/write back every", "that it changes nothing");
  add(config.memory.buffers.has_value(), "memory/buffers", "that there are no buffers");
  add(!config.output.trace_file.empty(), "output/trace file", "that no timeline is written");
  return notes;
}

void check_scratch(const PlannedRun& run, const MemoryPlan& plan) {
  const Scratch scratch = scratch_of(run, plan);
  BlockFile::check_room(scratch.folder, scratch.room);
}

nlohmann::ordered_json plan_object(const PlannedRun& run, const MemoryPlan& plan) {
  Json tiers = Json::object(), terms = Json::array();
  for (const TierRow& row : tier_rows(plan))
    tiers[name_of(row.tier)] = {{"units", row.units}, {"blocks", row.blocks}, {"bytes", row.bytes}};
  for (const MemoryTerm& t : plan.terms)
    terms.push_back(
        {{"name", t.name}, {"bytes", t.bytes}, {"where", t.place == MemoryPlace::device ? "device" : "host"}});
  const auto place = [&](MemoryPlace where, std::uint64_t budget, const std::string& source) {
    return Json{{"bytes", plan.total(where)}, {"budget", budget}, {"source", source}};
  };
  const Placement& p = plan.placement;
  const Scratch scratch = scratch_of(run, plan);
  return {
      {"model", describe(run.model, run.table)},
      {"parameters", run.table.parameters},
      {"machine", text_of(plan.machine)},
      {"streams", p.streams_any()},
      {"groups", p.groups},
      {"buffers", p.buffers},
      {"buffer_bytes", p.buffer_bytes},
      {"vector_buffer_bytes", p.vector_buffer_bytes},
      {"write_back_every", p.write_back_every},
      {"cost",
       {{"compute_s", plan.write_back_cost.compute_s},
        {"replay_s", plan.write_back_cost.replay_s},
        {"read_s", plan.write_back_cost.read_s},
        {"write_s", plan.write_back_cost.write_s}}},
      {"tiers", tiers},
      {"terms", terms},
      {"device", place(MemoryPlace::device, plan.device_budget, plan.device_source)},
      {"host", place(MemoryPlace::host, plan.host_budget, plan.host_source)},
      {"step", {{"link", traffic_object(plan.link)}, {"disk", traffic_object(plan.disk)}}},
      {"run",
       {{"steps", run.config.zo.steps}, {"disk", traffic_object(disk_traffic_of_run(run.config, run.data, plan))}}},
      {"scratch",
       {{"folder", scratch.folder.string()}, {"needed_bytes", scratch.room.bytes}, {"free_bytes", scratch.room.free}}}};
}

}  // namespace distzo2
