// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/json_file.hpp"
#include "io/regex.hpp"
#include "io/tokenizer_parts.hpp"

namespace distzo2 {

/// Where Metaspace puts its mark in front of a piece: of each, of the text's first, of none.
enum class PrependScheme { always, first, never };

/// The settings of a Metaspace pre-tokenizer or decoder, in the old form (add_prefix_space) or the new one.
struct Metaspace {
  std::string mark;  // one character
  PrependScheme prepend = PrependScheme::always;
  bool split = true;
};
Metaspace metaspace_of(const JsonObject& object);

/// The pre-tokenizers of a tokenizer.json, in order: ByteLevel, Split, Digits, Metaspace, and Sequences of them.
class PreTokenizer {
public:
  /// From the "pre_tokenizer" of `file`, which may be absent or null. Throws Error(file) naming what is not supported.
  explicit PreTokenizer(const JsonObject& file);

  /// Splits every piece that is no token yet; empty pieces vanish.
  std::vector<Piece> apply(std::vector<Piece> pieces) const;

private:
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  struct ByteLevel {
    bool add_prefix_space = false;
    std::optional<Regex> pattern;  // GPT-2's
  };
  struct Split {
    Regex pattern;
    Behavior behavior = Behavior::isolated;
    bool invert = false;
  };
  struct Digits {
    bool individual = false;
  };
  using Step = std::variant<ByteLevel, Split, Digits, Metaspace>;

  static Step step_of(const JsonObject& object);
  static void split(const Piece& piece, const std::vector<Span>& matches, Behavior behavior, bool invert,
                    std::vector<Piece>& out);
  static void apply(const ByteLevel& step, Piece piece, std::vector<Piece>& out);
  static void apply(const Split& step, Piece piece, std::vector<Piece>& out);
  static void apply(const Digits& step, Piece piece, std::vector<Piece>& out);
  static void apply(const Metaspace& step, Piece piece, std::vector<Piece>& out);

  std::vector<Step> steps_;
};

}  // namespace distzo2
