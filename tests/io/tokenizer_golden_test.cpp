// SPDX-License-Identifier: BSD-3-Clause
// Ids and texts made with the package `tokenizers`: tests/golden/make_tokenizer_goldens.py.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "io/tokenizer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tokenizer_goldens.hpp"

namespace distzo2 {

namespace {

/// How many of all strings differ in ids or in decoded text; the first of them are shown.
void expect_equal_to_golden(const std::string& name) {
  const std::vector<std::string> strings = golden_strings();
  ASSERT_GE(strings.size(), 2000U);
  const auto expected = golden_ids(name + "/ids.bin");
  ASSERT_EQ(expected.size(), strings.size());
  const nlohmann::json decoded = golden_json(name + "/decoded.json");
  const Tokenizer tokenizer = Tokenizer::from_folder(tokenizer_goldens / name);
  int shown = 0;
  for (std::size_t i = 0; i < strings.size() && shown < 5; ++i) {
    const nlohmann::json text = strings[i];
    const std::vector<std::int32_t> ids = tokenizer.encode(strings[i]);
    EXPECT_EQ(ids, expected[i]) << name << ", string " << i << ": " << text;
    const std::string back = decoded.value(std::to_string(i), strings[i]);
    EXPECT_EQ(tokenizer.decode(expected[i]), back) << name << ", string " << i << ": " << text;
    shown += ids != expected[i] || tokenizer.decode(expected[i]) != back ? 1 : 0;
  }
}

}  // namespace

TEST(Tokenizer, equals_goldens_of_opt_as_published) {
  expect_equal_to_golden("opt");
}

TEST(Tokenizer, equals_goldens_of_gpt2_with_flagged_added_tokens) {
  expect_equal_to_golden("gpt2");
}

TEST(Tokenizer, equals_goldens_of_single_digits_before_bytes) {
  expect_equal_to_golden("smollm2_like");
}

TEST(Tokenizer, equals_goldens_of_llama3_pattern_with_whole_words_first) {
  expect_equal_to_golden("llama3");
}

TEST(Tokenizer, equals_goldens_of_qwen_pattern_with_nfc) {
  expect_equal_to_golden("qwen");
}

TEST(Tokenizer, equals_goldens_of_llama2_by_normalizer) {
  expect_equal_to_golden("llama2_normalizer");
}

TEST(Tokenizer, equals_goldens_of_llama2_by_metaspace) {
  expect_equal_to_golden("llama2_metaspace");
}

TEST(Tokenizer, equals_goldens_of_unknown_tokens_beside_byte_fallback) {
  expect_equal_to_golden("metaspace_unknown");
}

TEST(Tokenizer, equals_goldens_of_every_step_and_behaviour) {
  const std::vector<std::string> strings = golden_strings();
  const nlohmann::json base = golden_json("base/tokenizer.json");
  const nlohmann::json variants = golden_json("variants.json");
  ASSERT_GE(variants.size(), 20U);
  const TemporaryFolder folder;
  for (const auto& variant : variants) {
    nlohmann::json changed = base;
    changed.update(variant["change"]);
    std::ofstream(folder.path() / "tokenizer.json") << changed;
    const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
    for (std::size_t i = 0; i < variant["ids"].size(); ++i) {
      const auto ids = variant["ids"][i].get<std::vector<std::int32_t>>();
      EXPECT_EQ(tokenizer.encode(strings[29 * i]), ids) << variant["change"] << nlohmann::json(strings[29 * i]);
      if (!variant["decoded"].empty()) {
        EXPECT_EQ(tokenizer.decode(ids), variant["decoded"][i]) << variant["change"] << nlohmann::json(strings[29 * i]);
      }
    }
  }
}

TEST(Tokenizer, serves_several_threads_at_once) {
  const std::vector<std::string> strings = golden_strings();
  const auto expected = golden_ids("qwen/ids.bin");
  const Tokenizer tokenizer = Tokenizer::from_folder(tokenizer_goldens / "qwen");
  std::vector<int> wrong(3, 0);
  std::vector<std::jthread> threads;
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < strings.size(); ++i) {
        count += tokenizer.encode(strings[i]) == expected[i] ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, (std::vector<int>{0, 0, 0}));
}

TEST(Tokenizer, knows_the_leading_token_of_each_folder) {
  const auto bos = [](const char* name) { return Tokenizer::from_folder(tokenizer_goldens / name).bos(); };
  EXPECT_EQ(bos("opt"), 2);                      // tokenizer_config.json: add_bos_token
  EXPECT_EQ(bos("llama3"), 707);                 // a template within a Sequence
  EXPECT_EQ(bos("llama2_normalizer"), 1);        // a template
  EXPECT_EQ(bos("qwen"), std::nullopt);          // add_bos_token: false
  EXPECT_EQ(bos("smollm2_like"), std::nullopt);  // a bos_token that nothing adds
}

}  // namespace distzo2
