// SPDX-License-Identifier: BSD-3-Clause
#include "app/checkpointing.hpp"

#include "app/ranks.hpp"
#include "app/run_checkpoints.hpp"
#include "core/error.hpp"
#include "io/checkpoint_manifest.hpp"
#include "io/direct_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <system_error>
#include <utility>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// Of a disk that nothing has been written to yet, for the estimate; a network's rather than a good disk's.
constexpr double unmeasured_bytes_per_s = 3e8;

/// What `work` fails with; empty: it does not.
template <class Work>
std::string problem_of(Work&& work) {
  try {
    std::forward<Work>(work)();
    return {};
  } catch (const Error& e) {
    return e.what();
  } catch (const fs::filesystem_error& e) {
    return e.what();
  }
}

}  // namespace

Checkpointing::Checkpointing(const CheckpointSource& source, std::uint32_t last) : s_(source), last_(last) {
  if (!s_.config.checkpoint.on()) return;
  const std::vector<RankPlace>& places = s_.job.places();
  const int rank = s_.job.world().rank();
  for (int r = 0; r < std::ssize(places); ++r) {
    const bool writes = places[static_cast<std::size_t>(r)].host == places[0].host && (!s_.one_reads || r == 0);
    if (writes && r == rank) writer_ = writers_;
    if (writes) ++writers_;
  }
  bytes_ = part_bytes(s_.store.chunks(), 0, static_cast<int>(s_.store.chunks().chunks.size()));
}

bool Checkpointing::minutes_are_over() const {
  const std::optional<double>& minutes = s_.config.checkpoint.every_minutes;
  return minutes && seconds_since(last_time_) >= 60 * *minutes;
}

double Checkpointing::estimate_s() const {
  if (!s_.config.checkpoint.on()) return 0.0;
  return took_s_ ? *took_s_ : static_cast<double>(bytes_) / unmeasured_bytes_per_s;
}

void Checkpointing::after_step(std::uint32_t steps, bool flagged, double seconds_left) {
  const std::optional<std::uint32_t>& every = s_.config.checkpoint.every_steps;
  const bool due = flagged || (every && steps % *every == 0);
  if (!due || steps == s_.config.zo.steps) return;  // what stands at the run's end is theta itself
  std::string decided;
  if (fits(steps, seconds_left, decided)) return take(steps);
  s_.progress.say("no checkpoint of step " + std::to_string(steps) + decided);
  last_time_ = Clock::now();
}

void Checkpointing::at_stop(std::uint32_t steps, double seconds_left) {
  if (!s_.config.checkpoint.on() || steps <= last_) return;
  std::string decided;
  const bool takes = fits(steps, seconds_left, decided);
  s_.progress.say((takes ? "checkpoint at this stop" : "no checkpoint at this stop") + decided);
  if (takes) take(steps);
}

bool Checkpointing::fits(std::uint32_t steps, double seconds_left, std::string& decided) {
  // In milliseconds, the least of all ranks: to gather it is to agree.
  constexpr double most = 1e15;
  const auto mine = static_cast<std::uint64_t>(std::clamp(1e3 * seconds_left, 0.0, most));
  const std::vector<std::uint64_t> all = s_.job.world().gather(mine);
  const auto left = static_cast<double>(*std::ranges::min_element(all));
  const bool does = s_.job.world().broadcast(std::uint64_t{1e3 * estimate_s() <= left ? 1U : 0U}) != 0;
  decided = fmt::format(": it {} about {:.1f} s, {}", does ? "takes" : "would take", estimate_s(),
                        took_s_ ? "as the last one" : fmt::format("for {}", bytes_text(bytes_)));
  if (left < most) decided += fmt::format(", and {:.1f} s are left", left / 1e3);
  if (!does) decided += fmt::format("; {} step{} would be replayed", steps - last_, steps - last_ == 1 ? "" : "s");
  return does;
}

std::pair<int, int> Checkpointing::own_chunks() const {
  // Nearly equal bytes, by where each chunk begins.
  const std::vector<Chunk>& chunks = s_.store.chunks().chunks;
  std::uint64_t total = 0;
  for (const Chunk& c : chunks) total += c.bytes;
  const auto cut = [&](int writer) {
    const std::uint64_t at = total * static_cast<std::uint64_t>(writer) / static_cast<std::uint64_t>(writers_);
    std::uint64_t before = 0;
    int c = 0;
    for (; c < std::ssize(chunks) && before < at; ++c) before += chunks[static_cast<std::size_t>(c)].bytes;
    return c;
  };
  return {cut(writer_), writer_ + 1 == writers_ ? static_cast<int>(chunks.size()) : cut(writer_ + 1)};
}

fs::path Checkpointing::begin(std::uint32_t steps, std::string& problem) {
  fs::path folder;
  problem = problem_of([&] {
    const fs::path place = checkpoint_folder(s_.folder.checkpoints(), steps);
    fs::create_directories(s_.folder.checkpoints());
    const FileRoom room = file_room(place / part_file_name(0), bytes_);
    if (!room.enough())
      refuse_for_space(s_.folder.checkpoints(), room, "free some, or keep fewer checkpoints (checkpoint/keep)");
    folder = make_folder_beside(place);
  });
  return folder;
}

Checkpointing::Written Checkpointing::write_part(const fs::path& folder) {
  Written written;
  if (writer_ < 0) return written;
  const auto [begin, end] = own_chunks();
  if (begin == end) return written;
  written.problem = problem_of([&, begin = begin, end = end] {
    written.part = write_checkpoint_part(
        folder, s_.store.chunks(), begin, end,
        [&](int chunk, std::byte* to) { return s_.store.read_stored(chunk, to); }, checkpoint_threads);
  });
  return written;
}

void Checkpointing::finish(const fs::path& folder, std::uint32_t steps, const std::vector<CheckpointPart>& parts,
                           std::optional<std::uint64_t> theta_digest) {
  CheckpointManifest m;
  m.step = steps;
  m.history = s_.trajectory->history(steps);
  m.theta0_digest = s_.theta0_digest;
  m.theta_digest = theta_digest;
  m.storage = s_.store.rule().storage;
  m.chunk_table = chunk_table_digest(s_.store.chunks());
  m.parts = parts;
  sync_folder(folder);  // its parts, before what vouches for them
  write_manifest(folder, m);
  sync_folder(folder);
  replace_folder(folder, checkpoint_folder(s_.folder.checkpoints(), steps));
  sync_folder(s_.folder.path);
  remove_old_checkpoints(s_.folder.checkpoints(), steps, s_.config.checkpoint.keep);
}

void Checkpointing::take(std::uint32_t steps) {
  Communicator& world = s_.job.world();
  const Job::Busy busy(s_.job);  // ranks that write nothing wait for those that do
  const auto started = Clock::now();
  // 1. Its digest, where that costs no pass over what streams; and a trajectory that leads to it.
  std::optional<std::uint64_t> digest;
  if (!s_.store.placement().streams_any()) digest = s_.theta_digest(steps);
  on_first(world, [&] { s_.trajectory->sync(); });
  // 2. A folder beside its place.
  std::string problem;
  fs::path folder;
  if (world.is_first()) folder = begin(steps, problem);
  folder = world.broadcast(folder.string());
  // 3. The parts.
  s_.progress.working("writing a checkpoint");
  std::vector<CheckpointPart> parts;
  if (!folder.empty()) {
    const Written mine = write_part(folder);
    const std::vector<std::string> problems = world.gather(mine.problem);
    const std::array<std::uint64_t, 4> words{static_cast<std::uint64_t>(mine.part.chunk_begin),
                                             static_cast<std::uint64_t>(mine.part.chunk_end), mine.part.bytes,
                                             mine.part.index_hash};
    const std::vector<int> counts(static_cast<std::size_t>(world.size()), static_cast<int>(words.size()));
    const std::vector<std::uint64_t> all = world.gather(std::span<const std::uint64_t>(words), counts);
    for (std::size_t r = 0; r < problems.size(); ++r) {
      if (problem.empty()) problem = problems[r];
      const std::uint64_t* const w = &all[r * words.size()];
      if (w[0] < w[1]) parts.push_back({static_cast<int>(w[0]), static_cast<int>(w[1]), w[2], w[3]});
    }
  }
  // 4. The manifest, and its place.
  if (world.is_first()) {
    if (problem.empty()) problem = problem_of([&] { finish(folder, steps, parts, digest); });
    std::error_code none;
    if (!problem.empty() && !folder.empty()) fs::remove_all(folder, none);
  }
  problem = world.broadcast(problem);
  last_time_ = Clock::now();  // one that failed is tried again when the next one is due
  if (!problem.empty()) {
    s_.progress.say(
        fmt::format("warning  no checkpoint of step {}: {}; the run goes on, and nothing is lost: its "
                    "trajectory gives theta from {}",
                    steps, problem, last_ == 0 ? "the base model" : fmt::format("step {}", last_)));
    return;
  }
  last_ = steps;
  took_s_ = seconds_since(started);
  s_.progress.say(fmt::format("checkpoint of step {}: {} in {:.1f} s", steps, bytes_text(bytes_), *took_s_));
}

}  // namespace distzo2
