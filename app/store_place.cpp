// SPDX-License-Identifier: BSD-3-Clause
#include "app/store_place.hpp"

#include "app/output_place.hpp"
#include "app/ranks.hpp"
#include "core/error.hpp"
#include "io/block_file.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_record_bytes = 1 << 20;  // thousands of places

/// Between the name of rank 0's store and another rank's number.
constexpr const char* of_rank_prefix = "-rank";

/// Where rank 0's store is or was; the other ranks' are beside it.
struct PlaceOfStores {
  fs::path first;
  fs::path run;  // the run's folder then
};

fs::path folder_of(const RunFolder& run) {
  return fs::weakly_canonical(run.path);
}

fs::path own_store(const RunFolder& run) {
  return run.path / "store";
}

/// Of the trajectory, in a store's folder.
fs::path copy_in(const fs::path& store) {
  return store / "trajectory.zoj";
}

/// And what a killed process left of one that it was about to put in place.
void remove_copy(const fs::path& store) {
  if (!BlockFile::stands_in(store)) return;
  std::error_code none;  // what cannot be removed keeps the folder, which is told of
  for (const fs::directory_entry& entry : fs::directory_iterator(store, none))
    if (entry.path() == copy_in(store) || is_made_beside(copy_in(store), entry.path().filename().string()))
      fs::remove(entry.path(), none);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Whether a run is in the folder where this one was then: it is that run, and this one a copy, or another one that the
/// place now belongs to.
bool is_of_another_run(const PlaceOfStores& place, const RunFolder& run) {
  std::error_code none;
  return place.run != folder_of(run) && fs::exists(RunFolder{place.run}.lock(), none);
}

/// Two lines a place; one within the run's folder is told of from there, and comes along with it.
std::vector<PlaceOfStores> recorded_places(const RunFolder& run) {
  std::vector<PlaceOfStores> places;
  std::error_code none;
  const std::uintmax_t bytes = fs::file_size(run.store_record(), none);
  if (none || bytes > most_record_bytes) return places;  // none, or what no run has written
  const std::vector<std::string> lines = lines_of(read_text_file(run.store_record(), most_record_bytes));
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    const PlaceOfStores place{lines[i], lines[i + 1]};
    static_cast<void>(fs::weakly_canonical(run.path / place.first, none));
    if (none) continue;  // of a damaged record: no path
    if (place.first.is_relative())
      places.push_back({run.path / place.first, folder_of(run)});
    else if (!is_of_another_run(place, run))
      places.push_back(place);
  }
  return places;
}

/// The one that this run would use, those that it used before, and that in its folder.
std::vector<PlaceOfStores> all_places(const RunConfig& config, const RunFolder& run) {
  std::vector<PlaceOfStores> places, candidates = recorded_places(run);
  candidates.insert(candidates.begin(), PlaceOfStores{fs::absolute(store_folder(config, run)), folder_of(run)});
  candidates.push_back({fs::absolute(own_store(run)), folder_of(run)});
  std::set<fs::path> known;
  for (const PlaceOfStores& place : candidates)
    if (known.insert(fs::weakly_canonical(place.first)).second) places.push_back(place);
  return places;
}

void write_record(const RunFolder& run, const std::vector<PlaceOfStores>& places) {
  std::string text;
  for (const auto& [first, then] : places) {
    if (first == fs::absolute(own_store(run))) continue;  // known without
    const bool inside = lies_within(first, run.path);
    const fs::path told = inside ? fs::weakly_canonical(first).lexically_relative(folder_of(run)) : first;
    text += told.string() + "\n" + then.string() + "\n";
  }
  std::error_code none;
  if (text.empty())
    fs::remove(run.store_record(), none);
  else
    replace_text_file(run.store_record(), text);
}

/// The folders there that have a store's name, of whatever rank.
std::vector<fs::path> stores_at(const fs::path& first) {
  std::vector<fs::path> stores;
  std::error_code none;  // no store was ever there, or another rank is just removing one
  if (fs::is_directory(first, none)) stores.push_back(first);
  for (fs::directory_iterator entry(first.parent_path(), none), end; !none && entry != end; entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    const int rank = number_after(name, first.filename().string() + of_rank_prefix);
    if (rank > 0 && name == store_of_rank(first, rank).filename()) stores.push_back(entry->path());
  }
  std::ranges::sort(stores);
  return stores;
}

/// What rank 0 finds, on every rank.
std::vector<fs::path> places_of_all(Communicator& world, const RunConfig& config, const RunFolder& run, bool record) {
  std::string text;
  on_first(world, [&] {
    const std::vector<PlaceOfStores> places = all_places(config, run);
    if (record || fs::exists(run.store_record())) write_record(run, places);  // without those of another run
    for (const PlaceOfStores& place : places) text += place.first.string() + "\n";
  });
  const std::vector<std::string> lines = lines_of(world.broadcast(text));
  return {lines.begin(), lines.end()};
}

/// Brings the latest store that this rank had elsewhere to the first of the places. Returns what is to be said of it.
std::string move_store(const std::vector<fs::path>& places, int rank) {
  const fs::path now = store_of_rank(places.front(), rank);
  if (BlockFile::stands_in(now)) return {};
  for (const fs::path& place : places) {
    const fs::path was = store_of_rank(place, rank);
    if (!BlockFile::stands_in(was)) continue;
    std::error_code error;
    fs::create_directories(now.parent_path(), error);
    fs::rename(was, now, error);
    return error ? std::string()
                 : fmt::format("note     this run's store is moved from {} to {}", was.string(), now.string());
  }
  return {};
}

/// What of the run's stores stands and is not among `used`.
std::vector<std::string> notes_of_others(const std::vector<fs::path>& places, const std::set<fs::path>& used,
                                         bool kept) {
  std::vector<std::string> notes;
  for (const fs::path& place : places)
    for (const fs::path& store : stores_at(place)) {
      if (used.contains(store) || !BlockFile::stands_in(store)) continue;
      const std::string size = bytes_text(BlockFile::bytes_in(store));
      notes.push_back(kept ? fmt::format("note     an earlier store of this run, {}, is left in {}: it is not used any "
                                         "more; remove it",
                                         size, store.string())
                           : fmt::format("note     an earlier store of this run, {}, in {} is not used any more and "
                                         "goes at the run's end",
                                         size, store.string()));
    }
  return notes;
}

/// The notes of all ranks; of what several see, once. A note names the host where that is not rank 0's.
std::vector<std::string> gathered(Job& job, const std::vector<std::string>& mine) {
  std::string text;
  for (const std::string& note : mine) text += note + "\n";
  const std::vector<std::string> of_ranks = job.world().gather(text);
  std::vector<std::string> notes;
  std::set<std::string> known;
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    const std::string& host = job.places()[r].host;
    for (const std::string& note : lines_of(of_ranks[r]))
      if (known.insert(note).second) notes.push_back(host == job.places()[0].host ? note : note + ", on " + host);
  }
  return notes;
}

}  // namespace

fs::path store_of_rank(const fs::path& first, int rank) {
  const std::string name = first.filename().string();
  return rank == 0 ? first : first.parent_path() / fmt::format("{}{}{}", name, of_rank_prefix, rank);
}

fs::path store_folder(const RunConfig& config, const RunFolder& run, int rank) {
  if (config.memory.scratch_folder.empty()) return store_of_rank(own_store(run), rank);
  const std::string path = folder_of(run).string();
  return store_of_rank(config.memory.scratch_folder / fmt::format("{}-{:016x}", run.path.filename().string(),
                                                                  XXH3_64bits(path.data(), path.size())),
                       rank);
}

StorePlace place_store(Job& job, const RunConfig& config, const RunFolder& run, const NodePlan& of_node) {
  Communicator& world = job.world();
  const bool on_disk = of_node.plan.disk_bytes > 0, own = on_disk && of_node.store_rank == world.rank();
  // 1. Who has a store now, and every place, which are kept before anything is moved or made.
  const std::vector<std::uint64_t> owns = world.gather(std::uint64_t{own ? 1U : 0U});
  const std::vector<fs::path> places = places_of_all(world, config, run, std::ranges::count(owns, 1U) > 0);
  // 2. Each rank's own.
  std::vector<std::string> notes;
  if (own)
    if (const std::string moved = move_store(places, world.rank()); !moved.empty()) notes.push_back(moved);
  world.barrier();
  // 3. What nobody has.
  std::set<fs::path> used;
  for (std::size_t r = 0; r < owns.size(); ++r)
    if (owns[r] != 0) used.insert(store_of_rank(places.front(), static_cast<int>(r)));
  for (std::string& note : notes_of_others(places, used, config.memory.keep_store)) notes.push_back(std::move(note));
  StorePlace place;
  if (on_disk) place.store = store_folder(config, run, of_node.store_rank);
  place.notes = gathered(job, notes);
  if (!config.memory.scratch_persistent) return place;
  if (own) place.copy = copy_in(place.store);
  if (own && !world.is_first()) place.copies.push_back(place.copy);
  if (world.is_first())
    for (const fs::path& at : places)
      for (const fs::path& store : stores_at(at)) place.copies.push_back(copy_in(store));
  return place;
}

std::vector<std::string> remove_stores(Job& job, const RunConfig& config, const RunFolder& run) {
  Communicator& world = job.world();
  world.barrier();  // nobody has one open
  std::vector<std::string> left;
  for (const fs::path& place : places_of_all(world, config, run, false))
    for (const fs::path& store : stores_at(place)) try {
        remove_copy(store);
        BlockFile::remove_files(store);
      } catch (const Error& problem) {
        left.push_back(fmt::format("note     {}; {} is not used any more: remove it", problem.what(), store.string()));
      }
  left = gathered(job, left);
  on_first(world, [&] {
    std::error_code none;  // a record that cannot be removed tells of stores that are not there, which is no harm
    if (left.empty()) fs::remove(run.store_record(), none);
  });
  return left;
}

}  // namespace distzo2
