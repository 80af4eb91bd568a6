// SPDX-License-Identifier: BSD-3-Clause
#include "app/store_place.hpp"

#include "app/output_place.hpp"
#include "app/placed_model.hpp"
#include "io/block_file.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

#include <sstream>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_record_bytes = 16384;

fs::path place_of(const RunFolder& run) {
  return fs::weakly_canonical(run.path);
}

/// Whether the run that the record was made for is where it was: then the folder that has the record is a copy.
bool stays_there(const StoreRecord& was, const RunFolder& run) {
  std::error_code none;
  return was.run != place_of(run) && fs::exists(RunFolder{was.run}.lock(), none);
}

}  // namespace

StoreRecord read_store_record(const RunFolder& run) {
  StoreRecord record;
  std::error_code none;
  if (!fs::exists(run.store_record(), none)) return record;
  std::istringstream lines(read_text_file(run.store_record(), most_record_bytes));
  std::string store, folder;
  if (std::getline(lines, store) && std::getline(lines, folder)) record = {store, folder};
  return record;
}

std::string settle_store(const StoreRecord& was, const RunFolder& run, const fs::path& place, int rank,
                         const fs::path& removed) {
  if (was.store.empty() || stays_there(was, run)) return {};
  const fs::path found = store_of_rank(was.store, rank);
  std::error_code error;
  if (!BlockFile::stands_in(found) || fs::equivalent(found, place, error)) return {};
  if (!place.empty() && !BlockFile::stands_in(place)) {
    fs::create_directories(place.parent_path(), error);
    fs::rename(found, place, error);
    if (!error) return fmt::format("note     this run's store is moved from {} to {}", found.string(), place.string());
  }
  const std::string size = bytes_text(BlockFile::bytes_in(found));
  if (!removed.empty() && fs::equivalent(found, removed, error))
    return fmt::format(
        "note     an earlier store of this run, {}, in {} is not used any more and goes at the run's end", size,
        found.string());
  return fmt::format("note     an earlier store of this run, {}, is left in {}: it is not used any more; remove it",
                     size, found.string());
}

void write_store_record(const RunFolder& run, const fs::path& place) {
  if (lies_within(place, run.path)) return remove_store_record(run);
  replace_text_file(run.store_record(), fs::absolute(place).string() + "\n" + place_of(run).string() + "\n");
}

void remove_store_record(const RunFolder& run) {
  std::error_code none;  // what cannot be removed tells of a store that is not there, which is no harm
  fs::remove(run.store_record(), none);
}

}  // namespace distzo2
