// SPDX-License-Identifier: BSD-3-Clause
#define PCRE2_CODE_UNIT_WIDTH 8
#include "io/regex.hpp"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "io/fail.hpp"

namespace distzo2 {

namespace {

constexpr std::size_t max_pattern_bytes = 1U << 16U;
constexpr std::uint32_t max_steps = 10'000'000;  // of backtracking in one match
constexpr std::uint32_t max_heap_kib = 1U << 16U;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  if (pcre2_get_error_message(code, buffer.data(), buffer.size()) < 0) {
    return fmt::format("PCRE2 error {}", code);
  }
  return reinterpret_cast<const char*>(buffer.data());
}

/// What a construct would silently mean something else in PCRE2 than in Oniguruma.
std::optional<std::string> ambiguous(std::string_view pattern, std::size_t at, bool in_class) {
  const std::string_view rest = pattern.substr(at);
  for (const std::string_view escape : {"\\w", "\\W", "\\b", "\\B", "\\h", "\\H", "\\R", "\\X", "\\G", "\\K"}) {
    if (rest.starts_with(escape)) {
      return std::string(escape);
    }
  }
  if (in_class && (rest.starts_with("&&") || (rest.starts_with("[") && !rest.starts_with("[:")))) {
    return std::string(rest.substr(0, rest.starts_with("[") ? 1 : 2)) + " inside [...]";
  }
  for (const std::string_view text : {"(?m", "}+"}) {  // "any character" for Ruby; a possessive {m,n} for PCRE2 only
    if (!in_class && rest.starts_with(text)) {
      return std::string(text);
    }
  }
  return std::nullopt;
}

/// The same pattern for PCRE2: its \s also holds U+180E, which has not been white space since Unicode 6.3.
std::string translated(std::string_view pattern, const std::string& where) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (const auto construct = ambiguous(pattern, i, in_class)) {
      fail(
          fmt::format("{}: the pattern \"{}\" uses {}, which is not supported; accepted are "
                      "\\s, \\S, \\d, \\D, \\p{{...}}, \\P{{...}}, classes and look-around",
                      where, pattern, *construct));
    }
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's' || escaped == 'S') {
        out += escaped == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      } else {
        out += {c, escaped};
      }
      if (std::string_view("pPx").find(escaped) != std::string_view::npos && pattern.substr(i + 1).starts_with("{")) {
        const std::size_t end = std::min(pattern.find('}', i), pattern.size() - 1);
        out += pattern.substr(i + 1, end - i);
        i = end;
      }
      continue;
    }
    if (in_class && pattern.substr(i).starts_with("[:")) {
      const std::size_t end = pattern.find(":]", i);
      const std::size_t last = end == std::string_view::npos ? pattern.size() - 1 : end + 1;
      out += pattern.substr(i, last - i + 1);
      i = last;
      continue;
    }
    in_class = c == '[' || (in_class && c != ']');
    out += c;
  }
  return out;
}

}  // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

void Regex::Free::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}

Regex::Regex(std::string_view pattern, std::string where) : Regex(pattern, std::move(where), false) {}

Regex Regex::literal(std::string_view text, std::string where) {
  return {text, std::move(where), true};
}

Regex::Regex(std::string_view pattern, std::string where, bool is_literal)
    : pattern_(pattern), where_(std::move(where)) {
  if (pattern.empty() || pattern.size() > max_pattern_bytes) {
    fail(fmt::format("{}: a pattern of {} bytes; 1 to {} are accepted", where_, pattern.size(), max_pattern_bytes));
  }
  const std::string source = is_literal ? pattern_ : translated(pattern, where_);
  // Oniguruma's ^ and $ always mean lines. \C would match a byte, within a character.
  const std::uint32_t options =
      PCRE2_UTF | (is_literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error, &offset, nullptr));
  if (!code_) {
    fail(fmt::format("{}: the pattern \"{}\" is not a regular expression that PCRE2 accepts: {}", where_, pattern_,
                     pcre2_message(error)));
  }
  // Without a just-in-time compiler PCRE2 interprets, with the same result.
  const int jit = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  if (jit != 0 && jit != PCRE2_ERROR_JIT_BADOPTION && jit != PCRE2_ERROR_NOMEMORY) {
    throw Error(ExitCode::internal, fmt::format("{}: {}", where_, pcre2_message(jit)));
  }
  limits_.reset(pcre2_match_context_create(nullptr));
  if (!limits_ || pcre2_set_match_limit(limits_.get(), max_steps) != 0 ||
      pcre2_set_heap_limit(limits_.get(), max_heap_kib) != 0) {
    throw std::bad_alloc();
  }
}

void Regex::refuse(const std::string& problem) const {
  fail(fmt::format("{}: the pattern \"{}\": {}", where_, pattern_, problem));
}

std::vector<Span> Regex::find_all(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(pcre2_match_data_create(1, nullptr),
                                                                                  &pcre2_match_data_free);
  if (!match) {
    throw std::bad_alloc();
  }
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
  std::vector<Span> found;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::uint32_t options = PCRE2_NO_UTF_CHECK;
    int result = pcre2_match(code_.get(), subject, text.size(), at, options, match.get(), limits_.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its stack on the heap
      options |= PCRE2_NO_JIT;
      result = pcre2_match(code_.get(), subject, text.size(), at, options, match.get(), limits_.get());
    }
    if (result == PCRE2_ERROR_NOMATCH) {
      break;
    }
    if (result < 0) {
      fail(fmt::format("{}: the pattern \"{}\" cannot be matched on a text of {} bytes: {}", where_, pattern_,
                       text.size(), pcre2_message(result)));
    }
    const Span span{bounds[0], bounds[1]};
    if (span.begin == span.end && !found.empty() && found.back().end == span.end) {
      // Search on behind one character.
      do {
        ++at;
      } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
      continue;
    }
    found.push_back(span);
    at = span.end;
  }
  return found;
}

}  // namespace distzo2
