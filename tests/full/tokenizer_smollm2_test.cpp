// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "io/tokenizer.hpp"
#include "tests/support/tokenizer_goldens.hpp"

namespace distzo2 {

/// The folder that scripts/get_smollm2 made, as ${DISTZO2_SMOLLM2} names it.
static std::filesystem::path smollm2_folder() {
  const char* folder = std::getenv("DISTZO2_SMOLLM2");
  return folder == nullptr ? "" : folder;
}

TEST(SmolLM2Tokenizer, equals_goldens) {
  const std::filesystem::path folder = smollm2_folder();
  ASSERT_TRUE(std::filesystem::exists(folder / "tokenizer.json"))
      << "DISTZO2_SMOLLM2 is \"" << folder.string() << "\"; it must name the folder that scripts/get_smollm2 makes";
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
