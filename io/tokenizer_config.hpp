// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/added_tokens.hpp"

namespace distzo2 {

/// What tokenizer_config.json and special_tokens_map.json say about a tokenizer; each may be missing.
struct TokenizerConfig {
  std::string file;                   // tokenizer_config.json's path, for messages
  std::string tokenizer_class;        // empty where absent
  std::optional<bool> add_bos_token;  // whether a text gets a leading token
  std::string bos_token;              // empty where absent
  bool add_prefix_space = false;
  std::vector<AddedToken> special_tokens;  // for folders without tokenizer.json
};

/// `id_of` gives the ids of the tokens that the files name without one; a token without an id is an Error(file).
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder,
                                      const std::function<std::optional<std::int32_t>(std::string_view)>& id_of);

/// The id of the one special token that the "post_processor" of a tokenizer.json puts in front of a text, if any.
std::optional<std::int32_t> leading_token(const JsonObject& file);

}  // namespace distzo2
