// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test_paths.hpp"

namespace distzo2 {

inline const std::filesystem::path tokenizer_goldens = test_paths::sources / "tests/golden/tokenizers";

inline nlohmann::json golden_json(const std::filesystem::path& file) {
  std::ifstream in(tokenizer_goldens / file);
  return nlohmann::json::parse(in);
}

/// The lists of an ids.bin: for each a count and that many ids, little-endian 16-bit integers.
inline std::vector<std::vector<std::int32_t>> golden_ids(const std::filesystem::path& file) {
  std::ifstream in(tokenizer_goldens / file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  const auto word = [&bytes](std::size_t i) {
    return static_cast<unsigned char>(bytes.at(2 * i)) + 256 * static_cast<unsigned char>(bytes.at(2 * i + 1));
  };
  std::vector<std::vector<std::int32_t>> lists;
  for (std::size_t at = 0; 2 * at < bytes.size();) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(word(at++)));
    for (std::int32_t& id : ids) {
      id = word(at++);
    }
    lists.push_back(std::move(ids));
  }
  return lists;
}

/// The strings that the ids are of.
inline std::vector<std::string> golden_strings() {
  return golden_json("strings.json").get<std::vector<std::string>>();
}

}  // namespace distzo2
