// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_changes.hpp"

#include "core/error.hpp"
#include "io/json_file.hpp"
#include "io/output_file.hpp"
#include "io/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_change_bytes = std::size_t{16} << 20;

// Keys that say what a record's numbers come to; and the arithmetic, as it is only reported of another machine.
constexpr std::array<std::string_view, 17> changeable{"data/sequence length", "data/task",          "data/train",
                                                      "data/train examples",  "data/dev examples",  "data/split seed",
                                                      "data/max length",      "data/leading token", "zo/batch",
                                                      "zo/learning rate",     "zo/schedule",        "zo/steps",
                                                      "zo/warm-up",           "zo/weight decay",    "zo/clip",
                                                      "zo/non-finite",        "precision/compute"};

// Keys by which every record is read.
constexpr std::array<std::string_view, 12> fixed{
    "model/shape",   "model/seed",        "model/tied head",    "zo/objective",
    "zo/seed",       "zo/epsilon",        "zo/directions",      "zo/kind",
    "zo/difference", "precision/storage", "precision/rounding", "precision/round every"};

bool is_changeable(std::string_view key) {
  return std::ranges::find(changeable, key) != changeable.end();
}

bool is_fixed(std::string_view key) {
  return std::ranges::find(fixed, key) != fixed.end();
}

std::vector<KeyValue> keys_of(const std::string& text) {
  std::vector<KeyValue> keys;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t colon = line.find(": "); colon != std::string::npos)
      keys.push_back({line.substr(0, colon), line.substr(colon + 2)});
  return keys;
}

/// The keys that the last record was made with: those of the run's beginning and what was changed since.
std::map<std::string, std::string> keys_now(const TrajectoryHeader& was, const std::vector<RecordedChange>& changes) {
  std::map<std::string, std::string> keys;
  for (const KeyValue& k : keys_of(was.mathematical_keys)) keys[k.key] = k.value;
  for (const RecordedChange& c : changes)
    if (c.key != training_examples) keys[c.key] = c.to;
  return keys;
}

}  // namespace

void refuse_resume(const fs::path& trajectory, const std::string& what) {
  throw Error(ExitCode::usage, fmt::format("{}: cannot go on with this run: {}", trajectory.string(), what));
}

std::vector<RecordedChange> recorded_changes(const fs::path& file, std::uint32_t steps) {
  std::vector<RecordedChange> changes;
  std::error_code none;
  if (!fs::exists(file, none)) return changes;
  std::istringstream lines(read_text_file(file, most_change_bytes));
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = parse_json(line, file.string(), {.max_depth = 2, .first_line = ++number});
    const JsonObject object(json, file.string());
    const auto step = static_cast<std::uint32_t>(
        object.integer("step", 0, static_cast<std::int64_t>(std::numeric_limits<std::uint32_t>::max())));
    if (step <= steps) changes.push_back({step, object.string("key"), object.string("from"), object.string("to")});
  }
  return changes;
}

void write_changes(const fs::path& file, std::span<const RecordedChange> changes) {
  std::string text;
  for (const RecordedChange& c : changes)
    text += json_text({{"step", c.step}, {"key", c.key}, {"from", c.from}, {"to", c.to}}, true) + "\n";
  replace_text_file(file, text);
}

std::vector<RecordedChange> RunChanges::all() const {
  std::vector<RecordedChange> changes = recorded;
  changes.insert(changes.end(), to_record.begin(), to_record.end());
  return changes;
}

void check_change_names(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (is_changeable(name)) continue;
    if (is_fixed(name))
      throw Error(
          ExitCode::usage,
          fmt::format("--change {}: it stands in the trajectory's header, and every record is read by it: a run "
                      "keeps it to its end. Begin a new run",
                      name));
    const std::set<std::string> known(changeable.begin(), changeable.end());
    const std::string near = nearest_name(name, known);
    throw Error(ExitCode::usage,
                fmt::format("--change {}: is no key that changes a run's mathematics{}; accepted: {}", name,
                            near.empty() ? near : fmt::format("; did you mean \"{}\"?", near), fmt::join(known, ", ")));
  }
}

void check_same_mathematics(const TrajectoryHeader& was, const RunConfig& config, const fs::path& trajectory,
                            std::uint32_t steps, RunChanges& changes) {
  std::vector<KeyValue> before;
  for (const auto& [key, value] : keys_now(was, changes.recorded)) before.push_back({key, value});
  std::map<std::string, std::string> now;
  for (const KeyValue& k : mathematical_keys(config)) now[k.key] = k.value;
  std::vector<std::string> refused;
  for (const std::string& difference : mathematical_differences(mathematical_keys(config), before)) {
    const std::string key = difference.substr(0, difference.find(':'));
    if (std::ranges::find(changes.names, key) == changes.names.end()) {
      refused.push_back(difference);
      continue;
    }
    const auto was_it = std::ranges::find(before, key, &KeyValue::key);
    changes.to_record.push_back({steps, key, was_it == before.end() ? "" : was_it->value, now[key]});
    // A schedule depends on the run's length, which is a key of its own only then.
    if (key == "zo/schedule" && now.contains("zo/steps"))
      changes.to_record.push_back({steps, "zo/steps", "", now["zo/steps"]});
  }
  if (refused.empty()) return;
  const bool can =
      std::ranges::all_of(refused, [](const std::string& d) { return is_changeable(d.substr(0, d.find(':'))); });
  refuse_resume(trajectory, fmt::format("the deck changes its mathematics: {}{}", fmt::join(refused, "; "),
                                        can ? "; --change KEY does so from here on, for each of these keys" : ""));
}

void check_same_examples(const TrajectoryHeader& was, std::uint64_t data_digest, const fs::path& trajectory,
                         std::uint32_t steps, RunChanges& changes) {
  const auto hex = [](std::uint64_t digest) { return fmt::format("{:016x}", digest); };
  std::string before = hex(was.data_digest);
  for (const RecordedChange& c : changes.recorded)
    if (c.key == training_examples) before = c.to;
  if (before == hex(data_digest)) return;
  if (std::ranges::none_of(changes.names, [](const std::string& name) { return name.starts_with("data/"); }))
    refuse_resume(
        trajectory,
        "the training examples are not those that the run began with; --change data/train goes on with these");
  changes.to_record.push_back({steps, training_examples, before, hex(data_digest)});
}

}  // namespace distzo2
