// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/example.hpp"
#include "io/dataset.hpp"
#include "io/task.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace distzo2 {

/// Text to token ids, without a leading or closing token. Called from several threads at once.
using Encode = std::function<std::vector<std::int32_t>(std::string_view)>;

struct PromptOptions {
  std::optional<std::int32_t> leading;  // token before every prompt (auto: the tokenizer's own, where it has one)
  int max_length = 2048;                // tokens of a prompt and its longest candidate, the leading one included
  bool truncate = true;                 // shorten what is longer; else drop the example
};

/// What tokenising found, for `validate` and the log.
struct PromptReport {
  std::size_t shortened = 0;              // prompts cut to max_length
  std::size_t dropped = 0;                // examples left out for their length
  std::size_t blank = 0;                  // rows in which a field has no text
  std::size_t split_inside = 0;           // prompts whose last tokens merge with a label's and were given to candidates
  std::vector<std::size_t> label_counts;  // (labels)
  std::vector<std::uint32_t> lengths;     // prompt and longest candidate, ascending
  std::uint32_t shortest() const { return lengths.empty() ? 0 : lengths.front(); }
  std::uint32_t median() const { return lengths.empty() ? 0 : lengths[(lengths.size() - 1) / 2]; }
  std::uint32_t longest() const { return lengths.empty() ? 0 : lengths.back(); }
};

struct TokenizedRows {
  std::vector<Example> examples;
  std::vector<std::uint32_t> rows;  // the row of the data set that each example was made of
  PromptReport report;
};

/// Tokens of one worded row. The whole text, prompt and answer, is tokenised for every answer, and once the prompt
/// without its trailing blanks; the shared prompt is the longest run of tokens with which all of these begin, and the
/// rest of each whole text is a candidate. So a candidate's tokens are those that the model meets in running text, also
/// where a label merges with the end of the prompt. A prompt too long keeps the leading token, where there is one, and
/// its last tokens; without `truncate` nothing is returned. Throws Error (file) naming `where` for a label that
/// max_length cannot hold with one token before it, a label or a prompt of no tokens.
std::optional<Example> tokenize(const TaskText& text, const Encode& encode, const PromptOptions& options,
                                std::string_view where, PromptReport& report);

/// These rows of a data set as examples of a task, in their order, counted and measured; threads over rows. Throws
/// Error (file) where all are dropped.
TokenizedRows tokenize_rows(const Task& task, const Dataset& data, std::span<const std::uint32_t> rows,
                            const Encode& encode, const PromptOptions& options);

}  // namespace distzo2
