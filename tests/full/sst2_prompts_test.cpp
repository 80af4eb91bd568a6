// SPDX-License-Identifier: BSD-3-Clause
#include "core/sampler.hpp"
#include "io/prompt.hpp"
#include "io/tokenizer.hpp"
#include "test_paths.hpp"

#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <string>

namespace distzo2 {
namespace {

/// Needs models/smollm2-135m-instruct (scripts/get_smollm2) and the variable SST2, the folder of validation.tsv.
TEST(Sst2Prompts, have_the_token_ids_of_transformers) {
  const std::filesystem::path source = test_paths::sources;
  const char* sst2 = std::getenv("SST2");
  ASSERT_NE(sst2, nullptr) << "set SST2 to the folder that holds SST-2's validation.tsv";
  const Tokenizer tokenizer = Tokenizer::from_folder(source / "models/smollm2-135m-instruct");
  const Task task = read_task(source / "inputs/tasks/sst2.json");
  const Dataset data = read_dataset(std::filesystem::path(sst2) / "validation.tsv");
  const auto rows = choose_rows(0, data.rows(), std::nullopt);
  const TokenizedRows tokenized = tokenize_rows(
      task, data, rows, [&](std::string_view text) { return tokenizer.encode(text); }, PromptOptions{});

  std::uint64_t digest = 0xCBF29CE484222325U;  // FNV-1a
  const auto hash = [&](const std::string& text) {
    for (const char c : text) {
      digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    }
  };
  const auto hash_ids = [&](const std::vector<std::int32_t>& ids) {
    for (const std::int32_t id : ids) {
      hash(" ");
      hash(std::to_string(id));
    }
  };
  for (const Example& example : tokenized.examples) {
    hash(std::to_string(example.label));
    hash_ids(example.prompt);
    for (const auto& candidate : example.candidates) {
      hash(" |");
      hash_ids(candidate);
    }
    hash("\n");
  }

  std::ifstream golden(source / "tests/golden/sst2_prompts.txt");
  std::size_t prompts = 0;
  std::uint64_t expected = 0;
  golden >> prompts >> std::hex >> expected;
  ASSERT_TRUE(golden);
  EXPECT_EQ(tokenized.examples.size(), prompts);
  EXPECT_EQ(digest, expected);
  EXPECT_EQ(tokenized.report.split_inside, 0U);
  EXPECT_EQ(tokenized.report.shortened, 0U);
}

}  // namespace
}  // namespace distzo2
