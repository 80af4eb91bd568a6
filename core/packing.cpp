// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing.hpp"

#include "core/error.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace distzo2 {

namespace {

std::span<const std::vector<std::int32_t>> chosen(const Example& example, Candidates which) {
  if (example.label < 0 || static_cast<std::size_t>(example.label) >= example.candidates.size()) {
    throw Error(ExitCode::internal, "an example's label " + std::to_string(example.label) + " is none of its " +
                                        std::to_string(example.candidates.size()) + " candidates");
  }
  const std::span<const std::vector<std::int32_t>> all(example.candidates);
  return which == Candidates::all ? all : all.subspan(static_cast<std::size_t>(example.label), 1);
}

/// An empty label must never mean "all tokens count".
void check(const Example& example, std::span<const std::vector<std::int32_t>> candidates) {
  if (example.prompt.empty()) {
    throw Error(ExitCode::file, "an example's prompt has no tokens: nothing predicts its label");
  }
  for (const auto& candidate : candidates) {
    if (candidate.empty()) {
      throw Error(ExitCode::file, "an example's candidate has no tokens: it would have no loss");
    }
  }
}

void append_rows(PackedBatch& batch, std::span<const std::int32_t> ids, int first_position) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    batch.ids.push_back(ids[i]);
    batch.positions.push_back(first_position + static_cast<int>(i));
  }
}

}  // namespace

PackedSize packed_size(const Example& example, Candidates which) {
  PackedSize size;
  size.tokens = static_cast<int>(example.prompt.size());
  for (const auto& candidate : chosen(example, which)) {
    size.tokens += static_cast<int>(candidate.size()) - 1;
    size.terms += static_cast<int>(candidate.size());
  }
  return size;
}

PackedExamples pack_examples(std::span<const Example> examples, std::span<const std::uint32_t> indices,
                             Candidates which) {
  PackedExamples packed;
  PackedBatch& batch = packed.batch;
  packed.examples.reserve(indices.size());
  for (const std::uint32_t index : indices) {
    if (index >= examples.size()) {
      throw Error(ExitCode::internal,
                  "example " + std::to_string(index) + " is none of " + std::to_string(examples.size()));
    }
    const Example& example = examples[index];
    const auto candidates = chosen(example, which);
    check(example, candidates);

    const int begin = batch.tokens();
    append_rows(batch, example.prompt, 0);
    const int end = batch.tokens();
    batch.spans.push_back({begin, end, begin, begin});

    ExampleTerms terms;
    terms.label = which == Candidates::all ? example.label : 0;
    for (const auto& candidate : candidates) {
      const int first_row = batch.tokens();
      append_rows(batch, std::span(candidate).first(candidate.size() - 1), end - begin);
      if (batch.tokens() > first_row) {
        batch.spans.push_back({first_row, batch.tokens(), begin, end});
      }
      terms.candidates.push_back({static_cast<int>(batch.terms.size()), static_cast<int>(candidate.size())});
      for (std::size_t i = 0; i < candidate.size(); ++i) {
        const int row = i == 0 ? end - 1 : first_row + static_cast<int>(i) - 1;
        batch.terms.push_back({row, candidate[i]});
      }
    }
    packed.examples.push_back(std::move(terms));
  }
  return packed;
}

}  // namespace distzo2
