// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/bpe.hpp"
#include "io/json_file.hpp"
#include "io/normalizer.hpp"
#include "io/tokenizer_parts.hpp"

namespace distzo2 {

/// A token that is found in the text as such, before byte-pair encoding.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = true;    // looked for after the normaliser ran, else before
  bool special = false;
  std::string shown;  // what it decodes to: the content, normalised where `normalized` says so
};

/// An entry of "added_tokens" or of tokenizer_config.json; `id` is where the entry itself has none.
AddedToken added_token_of(const JsonObject& entry, std::optional<std::int32_t> id = std::nullopt);

class AddedTokens {
public:
  AddedTokens() = default;
  /// Throws Error(file) naming `where` for an empty token, one that stands twice, an id out of range, or one that
  /// contradicts the vocabulary.
  AddedTokens(std::vector<AddedToken> tokens, const Bpe& bpe, const Normalizer& normalizer, const std::string& where);

  /// Cuts the added tokens out of `text`: those looked for before normalisation, then normalises what lies between
  /// them and cuts out the others. No piece is empty.
  std::vector<Piece> split(std::string_view text, const Normalizer& normalizer) const;

  std::optional<std::int32_t> id(std::string_view content) const;
  const AddedToken* token(std::int32_t id) const;  // null where none has it
  const std::vector<AddedToken>& all() const { return tokens_; }

private:
  /// The longest of a set of texts at a place, by their bytes.
  class Trie {
  public:
    void insert(std::string_view text, std::size_t token);
    struct Match {
      std::size_t token = 0;
      std::size_t end = 0;
    };
    std::optional<Match> longest(std::string_view text, std::size_t begin) const;
    /// The next byte from `begin` on with which some token starts, or npos.
    std::size_t next_start(std::string_view text, std::size_t begin) const {
      return text.find_first_of(first_bytes_, begin);
    }

  private:
    struct Node {
      std::map<char, std::size_t> children;
      std::optional<std::size_t> token;
    };
    std::vector<Node> nodes_{1};
    std::string first_bytes_;
  };

  void cut(const Piece& piece, const Trie& trie, std::vector<Piece>& out) const;

  std::vector<AddedToken> tokens_;
  std::map<std::int32_t, std::size_t> by_id_;
  std::map<std::string, std::size_t, std::less<>> by_content_;
  Trie before_;  // normalisation
  Trie after_;
};

}  // namespace distzo2
