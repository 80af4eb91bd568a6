// SPDX-License-Identifier: BSD-3-Clause
#include "app/data_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

std::string counted(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool same_bytes(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (a.empty() || b.empty() || fs::file_size(a, error) != fs::file_size(b, error) || error) return false;
  std::ifstream first(a, std::ios::binary), second(b, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(first), {}, std::istreambuf_iterator<char>(second));
}

/// The label that all examples have, where there is one and the task has others.
std::optional<std::string> only_label(const LoadedData& data, const ExampleSet& set) {
  const auto& counts = set.report.label_counts;
  const auto found = std::ranges::find_if(counts, [](std::size_t n) { return n > 0; });
  if (counts.size() < 2 || found == counts.end() || *found != set.examples.size()) return std::nullopt;
  const auto label = static_cast<std::size_t>(found - counts.begin());
  const std::string& word = data.task.labels[label].word;
  return word.empty() ? std::to_string(label) : word;
}

/// What of this set is trained on, where that is a tenth of it or more; else empty.
std::string trained_on(const ExampleSet& train, const ExampleSet& set) {
  if (set.path != train.path && same_bytes(set.path, train.path))
    return fmt::format("the file is the same as the training file {}", train.path.string());
  const auto text = [](const Example& e) {
    std::vector<std::int32_t> all = e.prompt;
    for (const auto& candidate : e.candidates) all.insert(all.end(), candidate.begin(), candidate.end());
    return std::pair(std::move(all), e.label);
  };
  std::map<std::pair<std::vector<std::int32_t>, int>, std::size_t> left;  // how often it stands in the set
  for (const Example& e : set.examples) ++left[text(e)];
  std::size_t seen = 0;
  for (const Example& e : train.examples) {
    if (left.empty()) break;
    if (const auto node = left.extract(text(e))) seen += node.mapped();
  }
  const std::size_t all = set.examples.size();
  return seen == all        ? "every example is trained on"
         : 10 * seen >= all ? fmt::format("{} of {} examples are trained on", seen, all)
                            : "";
}

void add_training_notes(std::vector<std::string>& notes, const LoadedData& data, std::uint32_t batch) {
  const ExampleSet& train = *data.train;
  if (train.examples.size() < batch)
    notes.push_back(fmt::format("{}: fewer than a batch of {}, so that a batch holds examples more than once",
                                train.source, batch));
  if (const auto label = only_label(data, train))
    notes.push_back(
        fmt::format("{}: every example has the label \"{}\", so that no other can be learnt", train.source, *label));
}

void add_evaluation_notes(std::vector<std::string>& notes, const LoadedData& data, const ExampleSet& set) {
  if (const auto label = only_label(data, set))
    notes.push_back(
        fmt::format("{}: every example has the label \"{}\", so that its accuracy says little", set.source, *label));
  if (const std::string what = data.train ? trained_on(*data.train, set) : ""; !what.empty())
    notes.push_back(fmt::format("{}: {}, so that its accuracy says little of new data", set.source, what));
}

}  // namespace

std::vector<std::string> notes_of(const LoadedData& data, std::uint32_t batch) {
  std::vector<std::string> notes;
  if (data.train) add_training_notes(notes, data, batch);
  for (const auto* set : {&data.dev, &data.test})
    if (*set) add_evaluation_notes(notes, data, **set);
  for (const auto* set : {&data.train, &data.dev, &data.test}) {
    if (!*set) continue;
    const ExampleSet& s = **set;
    if (s.quoted_rows > 0)
      notes.push_back(
          fmt::format("{}: {} of the file {} a cell in double quotes; in a TSV quotes are a part of the text", s.source,
                      counted(s.quoted_rows, "row"), s.quoted_rows == 1 ? "has" : "have"));
    if (s.report.blank > 0)
      notes.push_back(fmt::format("{}: {} without text in a column that the task's template uses", s.source,
                                  counted(s.report.blank, "example")));
    if (s.report.shortened > 0)
      notes.push_back(fmt::format("{}: {} shortened to {} tokens", s.source, counted(s.report.shortened, "prompt"),
                                  data.options.max_length));
    if (s.report.dropped > 0)
      notes.push_back(fmt::format("{}: {} of more than {} tokens left out", s.source,
                                  counted(s.report.dropped, "example"), data.options.max_length));
    if (s.report.split_inside > 0)
      notes.push_back(fmt::format("{}: in {} the label merges with the end of the prompt", s.source,
                                  counted(s.report.split_inside, "example")));
  }
  return notes;
}

}  // namespace distzo2
