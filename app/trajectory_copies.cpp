// SPDX-License-Identifier: BSD-3-Clause
#include "app/trajectory_copies.hpp"

#include "app/ranks.hpp"
#include "core/error.hpp"
#include "io/output_file.hpp"
#include "io/trajectory_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

struct Candidate {
  fs::path path;
  std::string bytes;  // of whole records alone
};

Candidate candidate(const fs::path& path) {
  Candidate c{path, read_trajectory_bytes(path)};
  c.bytes.resize(decode_trajectory(c.bytes, path.string()).whole_bytes);
  return c;
}

/// What this rank can go on with, the run's own first; and what is wrong with the copies that it cannot.
struct Candidates {
  std::vector<Candidate> whole;
  std::vector<std::string> damaged;
};

Candidates candidates(const OpenRun& run, bool first, const std::vector<fs::path>& copies) {
  Candidates found;
  if (first && run.found) found.whole.push_back(candidate(run.folder->trajectory()));
  for (const fs::path& path : copies) try {
      std::error_code none;
      if (fs::exists(path, none)) found.whole.push_back(candidate(path));
    } catch (const Error& problem) {
      found.damaged.emplace_back(problem.what());
    }
  return found;
}

std::size_t length(const Candidate& c) {
  return c.bytes.size();
}

}  // namespace

std::vector<std::string> take_longest(Job& job, OpenRun& run, const std::vector<fs::path>& copies) {
  Communicator& world = job.world();
  const bool first = world.is_first();
  // 1. The longest that any rank sees, of equal ones the run's own.
  const auto [whole, damaged] = candidates(run, first, copies);
  const auto best = std::ranges::max_element(whole, {}, length);
  const std::vector<std::uint64_t> lengths = world.gather(std::uint64_t{best == whole.end() ? 0 : length(*best)});
  const auto rank = static_cast<int>(std::ranges::max_element(lengths) - lengths.begin());
  const bool mine = rank == world.rank() && best != whole.end();
  const std::string longest = world.broadcast(mine ? best->bytes : std::string(), rank);
  const std::string name = world.broadcast(
      mine ? best->path.string() + (first ? std::string() : fmt::format(", on {}", job.place().host)) : std::string(),
      rank);
  const std::vector<std::string> problems = world.gather(damaged.empty() ? std::string() : damaged.front());
  std::vector<std::string> notes;
  for (const std::string& problem : problems) {
    if (problem.empty()) continue;
    if (longest.empty())
      throw Error(ExitCode::file, fmt::format("{}. There is no other copy of the run's trajectory: remove this one to "
                                              "begin at step 0",
                                              problem));
    if (const std::string note = fmt::format("note     {}. This copy is made again from {}", problem, name);
        std::ranges::find(notes, note) == notes.end())
      notes.push_back(note);
  }
  if (longest.empty()) return notes;

  // 2. All others are its beginning.
  std::string differs;
  for (const Candidate& c : whole)
    if (const std::string where = first_difference(c.bytes, longest); differs.empty() && !where.empty())
      differs = fmt::format(
          "{} and {} are not of one run: {} differs, and neither is the other's beginning. Keep the "
          "right one and move the other away",
          c.path.string(), name, where);
  for (const std::string& text : world.gather(differs))
    if (!text.empty()) throw Error(ExitCode::file, text);

  // 3. What the run goes on from.
  const std::uint64_t own = world.broadcast(std::uint64_t{first && run.found ? length(whole.front()) : 0});
  if (longest.size() <= own) return notes;
  const std::uint32_t had = run.steps_done();
  run.found = decode_trajectory(longest, name);
  if (first) run.taken = longest;
  notes.push_back(
      fmt::format("note     {} has {} steps, and the run's own trajectory {}: the run goes on from that copy", name,
                  run.steps_done(), had));
  return notes;
}

std::unique_ptr<TrajectoryWriter> open_copy(Communicator& world, const RunFolder& folder, const fs::path& path,
                                            double sync_s) {
  std::string bytes;
  on_first(world, [&] { bytes = read_trajectory_bytes(folder.trajectory()); });
  bytes = world.broadcast(std::move(bytes));
  if (path.empty()) return nullptr;
  const Trajectory found = decode_trajectory(bytes, folder.trajectory().string());
  bool same = false;
  try {
    same = read_trajectory_bytes(path) == bytes;
  } catch (const Error&) {  // there is none yet, or what stands there is replaced
  }
  if (!same) {
    replace_text_file(path, bytes);
    sync_folder(path.parent_path());
  }
  return std::make_unique<TrajectoryWriter>(path, found, sync_s);
}

}  // namespace distzo2
