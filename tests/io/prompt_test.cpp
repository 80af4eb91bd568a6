// SPDX-License-Identifier: BSD-3-Clause
#include "io/prompt.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <numeric>
#include <string>

namespace distzo2 {
namespace {

using Ids = std::vector<std::int32_t>;

/// A token a character, its code; two characters of `merged` become one token 1000 + the second's code.
struct Characters {
  std::string merged;
  Ids operator()(std::string_view text) const {
    Ids ids;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!merged.empty() && text.substr(i, 2) == merged) {
        ids.push_back(1000 + text[++i]);
      } else {
        ids.push_back(text[i]);
      }
    }
    return ids;
  }
};

TaskText worded(std::string prompt, std::vector<std::string> answers, int label = 0) {
  return {std::move(prompt), std::move(answers), label};
}

TEST(Prompt, gives_the_blank_before_a_label_to_the_label) {
  PromptReport report;
  const auto example = tokenize(worded("ab ", {"c", "de"}, 1), Characters{}, {}, "x", report);
  ASSERT_TRUE(example);
  EXPECT_EQ(example->prompt, (Ids{'a', 'b'}));
  EXPECT_EQ(example->candidates, (std::vector<Ids>{{' ', 'c'}, {' ', 'd', 'e'}}));
  EXPECT_EQ(example->label, 1);
  EXPECT_EQ(report.split_inside, 0U);
  EXPECT_EQ(report.lengths, (std::vector<std::uint32_t>{5}));
  EXPECT_EQ(report.label_counts, (std::vector<std::size_t>{0, 1}));
}

TEST(Prompt, keeps_a_line_feed_in_the_prompt) {
  PromptReport report;
  const auto example = tokenize(worded("a?\n", {"Y", "N"}), Characters{" Y"}, {}, "x", report);
  ASSERT_TRUE(example);
  EXPECT_EQ(example->prompt, (Ids{'a', '?', '\n'}));
  EXPECT_EQ(example->candidates, (std::vector<Ids>{{'Y'}, {'N'}}));
}

TEST(Prompt, splits_at_the_longest_common_prefix_where_a_label_merges_with_the_prompt) {
  PromptReport report;
  // "ab" + "c" and "ab" + "d", but "bc" is one token: the b goes to both candidates
  const auto example = tokenize(worded("ab", {"c", "d"}), Characters{"bc"}, {}, "x", report);
  ASSERT_TRUE(example);
  EXPECT_EQ(example->prompt, (Ids{'a'}));
  EXPECT_EQ(example->candidates, (std::vector<Ids>{{1000 + 'c'}, {'b', 'd'}}));
  EXPECT_EQ(report.split_inside, 1U);
}

TEST(Prompt, never_shares_more_than_the_prompt) {
  PromptReport report;
  const auto example = tokenize(worded("ab", {"cd", "ce"}), Characters{}, {}, "x", report);
  EXPECT_EQ(example->prompt, (Ids{'a', 'b'}));
  EXPECT_EQ(example->candidates, (std::vector<Ids>{{'c', 'd'}, {'c', 'e'}}));
}

TEST(Prompt, puts_the_leading_token_first) {
  PromptReport report;
  PromptOptions options;
  options.leading = 2;
  EXPECT_EQ(tokenize(worded("ab", {"c", "d"}), Characters{}, options, "x", report)->prompt, (Ids{2, 'a', 'b'}));
  // then even an empty prompt predicts something
  EXPECT_EQ(tokenize(worded(" ", {"c", "d"}), Characters{}, options, "x", report)->prompt, (Ids{2}));
}

TEST(Prompt, shortens_from_the_front_but_for_the_leading_token) {
  PromptOptions options;
  options.max_length = 5;
  PromptReport report;
  auto example = tokenize(worded("abcdef", {"g", "hi"}), Characters{}, options, "x", report);
  EXPECT_EQ(example->prompt, (Ids{'d', 'e', 'f'}));  // and the longest candidate: 5 tokens
  options.leading = 2;
  example = tokenize(worded("abcdef", {"g", "hi"}), Characters{}, options, "x", report);
  EXPECT_EQ(example->prompt, (Ids{2, 'e', 'f'}));
  EXPECT_EQ(report.shortened, 2U);
  example = tokenize(worded("ab", {"g", "hi"}), Characters{}, options, "x", report);
  EXPECT_EQ(example->prompt, (Ids{2, 'a', 'b'}));  // just fits
  EXPECT_EQ(report.shortened, 2U);
  EXPECT_EQ(report.lengths, (std::vector<std::uint32_t>{5, 5, 5}));
}

TEST(Prompt, refuses_what_cannot_hold_or_predict_its_label) {
  PromptReport report;
  PromptOptions options;
  options.max_length = 2;
  const auto message = [&](const TaskText& text) -> std::string {
    try {
      tokenize(text, Characters{}, options, "data.tsv, line 7", report);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::file);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(
      message(worded("abc", {"g", "hi"})),
      "data.tsv, line 7: a label of 2 tokens and one token before it do not fit into a maximal length of 2 tokens");
  EXPECT_EQ(message(worded("abc", {"g", "h"})), "");
  options.truncate = false;
  EXPECT_NE(message(worded("abc", {"g", "hi"})).find("line 7: a label of 2 tokens"), std::string::npos);
  EXPECT_EQ(message(worded("abc", {"g", "h"})), "");  // dropped: one token before the label would fit
  EXPECT_EQ(report.dropped, 1U);
  options.truncate = true;
  EXPECT_NE(message(worded(" ", {"g", "h"})).find("line 7: no token stands before the label"), std::string::npos);
  EXPECT_NE(message(worded("abc", {"g", ""})).find("line 7: the answer \"\" has no tokens"), std::string::npos);
}

class PromptRows : public ::testing::Test {
protected:
  PromptRows() {
    data_.path = "data.tsv";
    data_.columns = {"label", "s"};
    data_.cells = {"0", "aaaa", "1", "bb", "1", "c", "0", "dddddd"};
    data_.lines = {2, 3, 4, 5};
  }
  Task task_ =
      parse_task(R"({"name": "t", "template": "{s}{label}", "metric": "accuracy", "objective": "classification",
                              "labels": [{"value": "0", "word": "x"}, {"value": "1", "word": "y"}]})",
                 "t.json");
  Dataset data_;
  std::vector<std::uint32_t> rows_{3, 0, 1, 2};
};

TEST_F(PromptRows, counts_labels_lengths_and_shortened_examples) {
  PromptOptions options;
  options.max_length = 4;
  const TokenizedRows all = tokenize_rows(task_, data_, rows_, Characters{}, options);
  ASSERT_EQ(all.examples.size(), 4U);
  EXPECT_EQ(all.examples[0].prompt, (Ids{'d', 'd', 'd'}));
  EXPECT_EQ(all.examples[3].label, 1);
  EXPECT_EQ(all.report.shortened, 2U);
  EXPECT_EQ(all.report.dropped, 0U);
  EXPECT_EQ(all.report.label_counts, (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(all.report.lengths, (std::vector<std::uint32_t>{2, 3, 4, 4}));
  EXPECT_EQ(all.report.shortest(), 2U);
  EXPECT_EQ(all.report.median(), 3U);
  EXPECT_EQ(all.report.longest(), 4U);
}

TEST_F(PromptRows, drops_longer_examples_where_told_and_says_which_stay) {
  PromptOptions options;
  options.max_length = 4;
  options.truncate = false;
  const TokenizedRows some = tokenize_rows(task_, data_, rows_, Characters{}, options);
  EXPECT_EQ(some.rows, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(some.report.dropped, 2U);
  EXPECT_EQ(some.report.label_counts, (std::vector<std::size_t>{0, 2}));
  options.max_length = 1;
  EXPECT_THROW(tokenize_rows(task_, data_, rows_, Characters{}, options), Error);
}

}  // namespace
}  // namespace distzo2
