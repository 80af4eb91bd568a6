// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "io/json_file.hpp"
#include "io/pre_tokenizer.hpp"
#include "io/regex.hpp"

namespace distzo2 {

/// The decoders of a tokenizer.json, in order: ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, and Sequences
/// of them.
class TokenDecoder {
public:
  /// From the "decoder" of `file`, which may be absent or null (tokens are then joined by blanks). Throws Error(file)
  /// naming what is not supported.
  explicit TokenDecoder(const JsonObject& file);
  /// GPT-2's.
  static TokenDecoder byte_level();

  /// The text of these tokens, valid UTF-8.
  std::string apply(std::vector<std::string> tokens) const;

private:
  struct ByteLevel {};
  struct Replace {
    Regex pattern;
    std::string content;
  };
  struct ByteFallback {};
  struct Fuse {};
  struct Strip {
    std::string content;  // one character
    std::int64_t start = 0;
    std::int64_t stop = 0;
  };
  using Step = std::variant<ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace>;

  TokenDecoder() = default;
  static Step step_of(const JsonObject& object);
  using Tokens = std::vector<std::string>;
  static Tokens apply(const ByteLevel& step, Tokens tokens);
  static Tokens apply(const Replace& step, Tokens tokens);
  static Tokens apply(const ByteFallback& step, Tokens tokens);
  static Tokens apply(const Fuse& step, Tokens tokens);
  static Tokens apply(const Strip& step, Tokens tokens);
  static Tokens apply(const Metaspace& step, Tokens tokens);

  std::vector<Step> steps_;
  std::string where_;  // for messages
};

}  // namespace distzo2
