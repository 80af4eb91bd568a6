// SPDX-License-Identifier: BSD-3-Clause
// What memory is planned for: the largest batch that a run can meet, also where a batch crosses epochs.
#include "app/step_losses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/sampler.hpp"

namespace distzo2 {
namespace {

/// Examples with prompts of these lengths and answers of one token.
std::vector<Example> examples_of(const std::vector<std::size_t>& lengths) {
  std::vector<Example> examples(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    examples[i].prompt.assign(lengths[i], 1);
    examples[i].candidates = {{2}, {3}};
  }
  return examples;
}

int tokens_of(const std::vector<Example>& examples, std::uint32_t batch) {
  return largest_batch(examples, batch, Objective::language_model).tokens;
}

TEST(LargestBatch, of_three_of_four_holds_the_long_one_twice) {
  const std::vector<Example> examples = examples_of({2, 100, 2, 2});
  const int small = tokens_of(examples_of({2}), 1), large = tokens_of(examples_of({100}), 1);
  ASSERT_EQ(large - small, 98);
  EXPECT_EQ(tokens_of(examples, 1), large);
  EXPECT_EQ(tokens_of(examples, 2), large + small);  // no batch crosses an epoch
  EXPECT_EQ(tokens_of(examples, 3), 2 * large + small);
  EXPECT_EQ(tokens_of(examples, 4), large + 3 * small);
  EXPECT_EQ(tokens_of(examples, 5), 2 * large + 3 * small);
}

TEST(LargestBatch, is_the_largest_that_the_sampler_gives) {
  const std::vector<Example> examples = examples_of({3, 50, 2, 40, 5});
  const auto count = static_cast<std::uint32_t>(examples.size());
  for (const std::uint32_t batch : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 10U, 12U}) {
    int largest = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      Sampler sampler(seed, static_cast<int>(batch), count);
      for (std::uint32_t t = 0; t < 20; ++t) {
        int sum = 0;
        for (const std::uint32_t i : sampler.indices(t)) sum += tokens_of({examples[i]}, 1);
        largest = std::max(largest, sum);
      }
    }
    EXPECT_EQ(tokens_of(examples, batch), largest) << batch;
  }
}

}  // namespace
}  // namespace distzo2
