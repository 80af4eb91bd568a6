// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_checkpoints.hpp"

#include "core/error.hpp"
#include "io/output_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = RunFolder::checkpoint_prefix;

/// By step, the newest first.
std::map<std::uint32_t, fs::path, std::greater<>> folders_in(const fs::path& checkpoints) {
  std::map<std::uint32_t, fs::path, std::greater<>> found;
  std::error_code none;  // there are none yet
  for (fs::directory_iterator entry(checkpoints, none), end; !none && entry != end; entry.increment(none)) {
    const int step = number_after(entry->path().filename().string(), prefix);
    if (step >= 0 && entry->path() == checkpoint_folder(checkpoints, static_cast<std::uint32_t>(step)))
      found.emplace(static_cast<std::uint32_t>(step), entry->path());
  }
  return found;
}

void remove_checkpoint(const fs::path& folder) {
  std::error_code none;
  const fs::path gone = make_folder_beside(folder);
  fs::rename(folder, gone, none);
  fs::remove_all(gone, none);
}

}  // namespace

fs::path checkpoint_folder(const fs::path& checkpoints, std::uint32_t step) {
  return checkpoints / fmt::format("{}{}", prefix, step);
}

UsableCheckpoints usable_checkpoints(const fs::path& checkpoints, const Trajectory& found, const ChunkTable& table,
                                     Storage storage) {
  UsableCheckpoints usable;
  const std::vector<std::uint64_t> histories = update_histories(found.steps);
  for (const auto& [step, folder] : folders_in(checkpoints)) try {
      const CheckpointManifest manifest = read_manifest(folder, table, storage);
      const std::string name = folder.string();
      if (manifest.step > found.steps.size())
        usable.problems.push_back(fmt::format("{}: the run goes on before it, from step {}", name, found.steps.size()));
      else if (manifest.step != step || manifest.history != histories[manifest.step] ||
               manifest.theta0_digest != found.header.theta0_digest)
        usable.problems.push_back(
            fmt::format("{}: it is of another run, or of another continuation of this one", name));
      else
        usable.newest_first.push_back({folder, manifest});
    } catch (const Error& e) {
      usable.problems.emplace_back(e.what());
    }
  return usable;
}

void share_checkpoints(Communicator& world, UsableCheckpoints& found, const ChunkTable& table, Storage storage) {
  std::string text;
  for (const FoundCheckpoint& c : found.newest_first) text += c.folder.string() + "\n";
  text = world.broadcast(text);
  found.any = !text.empty();
  found.newest_step = static_cast<std::uint32_t>(
      world.broadcast(std::uint64_t{found.newest_first.empty() ? 0 : found.newest_first.front().manifest.step}));
  if (world.is_first()) return;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) try {
      found.newest_first.push_back({line, read_manifest(line, table, storage)});
    } catch (const Error&) {  // another machine's disk: this rank begins with the base model
    }
}

void remove_old_checkpoints(const fs::path& checkpoints, std::uint32_t step, std::uint32_t keep) try {
  std::uint32_t kept = 0;
  for (const auto& [of_step, folder] : folders_in(checkpoints))
    if (of_step > step || ++kept > keep) remove_checkpoint(folder);
} catch (const Error&) {
}

}  // namespace distzo2
