// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;  // PCRE2's own tags, so that its header stays in one source
struct pcre2_real_match_context_8;

namespace distzo2 {

/// Bytes [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A Unicode pattern as tokenizers' files write it (Oniguruma's syntax), matched by PCRE2 with bounded effort.
/// Immutable once made: any number of threads may search with it.
class Regex {
public:
  /// `where` (file and key) heads every message. Throws Error(file) where the pattern is empty, does not compile, or
  /// uses a construct that the two syntaxes read differently.
  Regex(std::string_view pattern, std::string where);
  /// The pattern that matches exactly this text.
  static Regex literal(std::string_view text, std::string where);

  /// All matches that do not overlap, leftmost first; an empty match is not taken where the last match ended.
  /// `text` is valid UTF-8. Throws Error(file) where the pattern backtracks beyond the limit.
  std::vector<Span> find_all(std::string_view text) const;

  /// Error (file) naming where the pattern stands.
  [[noreturn]] void refuse(const std::string& problem) const;

private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
    void operator()(pcre2_real_match_context_8* context) const;
  };

  Regex(std::string_view pattern, std::string where, bool is_literal);

  std::string pattern_;
  std::string where_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
  std::unique_ptr<pcre2_real_match_context_8, Free> limits_;
};

}  // namespace distzo2
