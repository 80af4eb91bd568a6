// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <filesystem>

#include "io/tokenizer.hpp"
#include "test_paths.hpp"
#include "tests/support/tokenizer_goldens.hpp"

namespace distzo2 {

/// Needs models/smollm2-135m-instruct (scripts/get_smollm2).
TEST(SmolLM2Tokenizer, equals_goldens) {
  const std::filesystem::path folder = test_paths::sources / "models/smollm2-135m-instruct";
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const std::vector<std::string> strings = golden_strings();
  const auto expected = golden_ids("smollm2_ids.bin");
  ASSERT_EQ(expected.size(), strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) {
    ASSERT_EQ(tokenizer.encode(strings[i]), expected[i]) << nlohmann::json(strings[i]);
    ASSERT_EQ(tokenizer.decode(expected[i]), strings[i]);
  }
  EXPECT_EQ(tokenizer.encode("The capital of France is"), (std::vector<std::int32_t>{504, 3575, 282, 4649, 314}));
  EXPECT_EQ(tokenizer.bos(), std::nullopt);
}

}  // namespace distzo2
