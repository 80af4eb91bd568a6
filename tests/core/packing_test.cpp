// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <numeric>

namespace distzo2 {
namespace {

// Two prompts of 3 and 2 tokens; the second's candidates have 1 and 3 tokens.
std::vector<Example> examples() {
  return {Example{{10, 11, 12}, {{20}, {21}}, 1}, Example{{13, 14}, {{22}, {23, 24, 25}}, 1}};
}

void expect_span(const AttentionSpan& s, int q0, int q1, int p0, int p1) {
  EXPECT_EQ(s.query_begin, q0);
  EXPECT_EQ(s.query_end, q1);
  EXPECT_EQ(s.prefix_begin, p0);
  EXPECT_EQ(s.prefix_end, p1);
}

void expect_terms(const PackedBatch& batch, const std::vector<std::pair<int, int>>& expected) {
  std::vector<std::pair<int, int>> terms;
  for (const LossTerm& term : batch.terms) {
    terms.emplace_back(term.token, term.target);
  }
  EXPECT_EQ(terms, expected);
}

TEST(Packing, shares_a_prompt_among_candidates_and_adds_no_row_for_one_token) {
  const auto all = examples();
  const std::vector<std::uint32_t> order{0, 1};
  const PackedExamples packed = pack_examples(all, order, Candidates::all);
  const PackedBatch& batch = packed.batch;
  EXPECT_EQ(batch.ids, (std::vector<std::int32_t>{10, 11, 12, 13, 14, 23, 24}));
  EXPECT_EQ(batch.positions, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 3}));
  ASSERT_EQ(batch.spans.size(), 3U);
  expect_span(batch.spans[0], 0, 3, 0, 0);
  expect_span(batch.spans[1], 3, 5, 3, 3);
  expect_span(batch.spans[2], 5, 7, 3, 5);
  expect_terms(batch, {{2, 20}, {2, 21}, {4, 22}, {4, 23}, {5, 24}, {6, 25}});

  ASSERT_EQ(packed.examples.size(), 2U);
  EXPECT_EQ(packed.examples[0].label, 1);
  EXPECT_EQ(packed.examples[1].label, 1);
  ASSERT_EQ(packed.examples[1].candidates.size(), 2U);
  EXPECT_EQ(packed.examples[0].candidates[1].first, 1);
  EXPECT_EQ(packed.examples[0].candidates[1].count, 1);
  EXPECT_EQ(packed.examples[1].candidates[1].first, 3);
  EXPECT_EQ(packed.examples[1].candidates[1].count, 3);
}

TEST(Packing, takes_the_right_candidate_alone_and_the_callers_order) {
  const auto all = examples();
  const std::vector<std::uint32_t> order{1, 0, 1};
  const PackedExamples packed = pack_examples(all, order, Candidates::label);
  EXPECT_EQ(packed.batch.ids, (std::vector<std::int32_t>{13, 14, 23, 24, 10, 11, 12, 13, 14, 23, 24}));
  expect_terms(packed.batch, {{1, 23}, {2, 24}, {3, 25}, {6, 21}, {8, 23}, {9, 24}, {10, 25}});
  for (const ExampleTerms& terms : packed.examples) {
    EXPECT_EQ(terms.candidates.size(), 1U);
    EXPECT_EQ(terms.label, 0);
  }
  EXPECT_EQ(packed.examples[2].candidates[0].first, 4);
}

TEST(Packing, covers_every_token_once_and_knows_its_size_before) {
  const auto all = examples();
  const std::vector<std::uint32_t> order{1, 0};
  for (const Candidates which : {Candidates::all, Candidates::label}) {
    const PackedExamples packed = pack_examples(all, order, which);
    int next = 0;
    for (const AttentionSpan& span : packed.batch.spans) {
      EXPECT_EQ(span.query_begin, next);
      EXPECT_GT(span.query_end, span.query_begin);
      next = span.query_end;
    }
    EXPECT_EQ(next, packed.batch.tokens());
    const PackedSize a = packed_size(all[0], which);
    const PackedSize b = packed_size(all[1], which);
    EXPECT_EQ(a.tokens + b.tokens, packed.batch.tokens());
    EXPECT_EQ(a.terms + b.terms, static_cast<int>(packed.batch.terms.size()));
  }
}

TEST(Packing, refuses_a_candidate_or_prompt_of_no_tokens) {
  const std::vector<std::uint32_t> first{0};
  const std::vector<Example> no_label{Example{{1}, {{2}, {}}, 0}};
  EXPECT_THROW(pack_examples(no_label, first, Candidates::all), Error);
  const std::vector<Example> no_prompt{Example{{}, {{2}, {3}}, 0}};
  EXPECT_THROW(pack_examples(no_prompt, first, Candidates::label), Error);
  const std::vector<Example> bad_label{Example{{1}, {{2}, {3}}, 2}};
  EXPECT_THROW(pack_examples(bad_label, first, Candidates::label), Error);
  const std::vector<std::uint32_t> beyond{1};
  EXPECT_THROW(pack_examples(bad_label, beyond, Candidates::all), Error);
}

}  // namespace
}  // namespace distzo2
