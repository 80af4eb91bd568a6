// SPDX-License-Identifier: BSD-3-Clause
#include "io/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/pieces.hpp"
#include "io/fail.hpp"

namespace distzo2 {

namespace {

using Ids = std::vector<std::int32_t>;

std::size_t common_prefix(const Ids& a, const Ids& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

constexpr std::size_t rows_of_piece = 256;  // that a thread takes at a time

void add(PromptReport& sum, const PromptReport& part) {
  sum.shortened += part.shortened;
  sum.dropped += part.dropped;
  sum.blank += part.blank;
  sum.split_inside += part.split_inside;
  sum.label_counts.resize(std::max(sum.label_counts.size(), part.label_counts.size()), 0);
  for (std::size_t i = 0; i < part.label_counts.size(); ++i) {
    sum.label_counts[i] += part.label_counts[i];
  }
  sum.lengths.insert(sum.lengths.end(), part.lengths.begin(), part.lengths.end());
}

}  // namespace

std::optional<Example> tokenize(const TaskText& text, const Encode& encode, const PromptOptions& options,
                                std::string_view where, PromptReport& report) {
  // A blank before the label belongs to the label's first token in byte-level vocabularies.
  const std::size_t end = text.prompt.find_last_not_of(' ');
  const Ids prompt = encode(std::string_view(text.prompt).substr(0, end == std::string::npos ? 0 : end + 1));
  std::vector<Ids> wholes;
  std::size_t shared = prompt.size();
  for (const std::string& answer : text.answers) {
    wholes.push_back(encode(text.prompt + answer));
    shared = std::min(shared, common_prefix(prompt, wholes.back()));
  }

  const auto cut = static_cast<std::ptrdiff_t>(shared);
  Example example;
  example.label = text.label;
  if (options.leading) {
    example.prompt.push_back(*options.leading);
  }
  example.prompt.insert(example.prompt.end(), prompt.begin(), prompt.begin() + cut);
  if (example.prompt.empty()) {
    fail(fmt::format("{}: no token stands before the label: nothing predicts it", where));
  }
  std::size_t longest = 0;
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    example.candidates.emplace_back(wholes[i].begin() + cut, wholes[i].end());
    longest = std::max(longest, example.candidates.back().size());
    if (example.candidates.back().empty()) {
      fail(fmt::format("{}: the answer \"{}\" has no tokens of its own", where, text.answers[i]));
    }
  }

  const auto limit = static_cast<std::size_t>(std::max(options.max_length, 0));
  if (example.prompt.size() + longest > limit) {
    if (longest + 1 > limit) {
      fail(
          fmt::format("{}: a label of {} tokens and one token before it do not fit into a "
                      "maximal length of {} tokens",
                      where, longest, limit));
    }
    if (!options.truncate) {
      ++report.dropped;
      return std::nullopt;
    }
    const auto first_kept = example.prompt.begin() + (options.leading ? 1 : 0);
    const auto surplus = static_cast<std::ptrdiff_t>(example.prompt.size() + longest - limit);
    example.prompt.erase(first_kept, first_kept + surplus);
    ++report.shortened;
  }

  report.blank += text.blank ? 1 : 0;
  report.split_inside += shared < prompt.size() ? 1 : 0;
  report.label_counts.resize(std::max(report.label_counts.size(), text.answers.size()), 0);
  ++report.label_counts[static_cast<std::size_t>(text.label)];
  report.lengths.push_back(static_cast<std::uint32_t>(example.prompt.size() + longest));
  return example;
}

TokenizedRows tokenize_rows(const Task& task, const Dataset& data, std::span<const std::uint32_t> rows,
                            const Encode& encode, const PromptOptions& options) {
  const TaskReader reader(task, data);
  std::vector<TokenizedRows> pieces((rows.size() + rows_of_piece - 1) / rows_of_piece);
  for_each_piece(pieces.size(), [&](std::size_t i) {
    TokenizedRows& piece = pieces[i];
    for (const std::uint32_t row :
         rows.subspan(i * rows_of_piece, std::min(rows_of_piece, rows.size() - i * rows_of_piece))) {
      auto example = tokenize(reader.text(row), encode, options, data.where(row), piece.report);
      if (example) {
        piece.examples.push_back(std::move(*example));
        piece.rows.push_back(row);
      }
    }
  });
  TokenizedRows result;
  result.report.label_counts.resize(task.labels.size(), 0);
  for (TokenizedRows& piece : pieces) {
    std::move(piece.examples.begin(), piece.examples.end(), std::back_inserter(result.examples));
    result.rows.insert(result.rows.end(), piece.rows.begin(), piece.rows.end());
    add(result.report, piece.report);
  }
  if (result.examples.empty()) {
    fail(fmt::format("{}: no example is left: {} of {} rows exceed the maximal length of {} tokens and were dropped",
                     data.path.string(), result.report.dropped, rows.size(), options.max_length));
  }
  std::sort(result.report.lengths.begin(), result.report.lengths.end());
  return result;
}

}  // namespace distzo2
