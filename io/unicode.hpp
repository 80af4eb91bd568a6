// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace distzo2 {

/// Offset of the first byte that is not part of well-formed UTF-8 (surrogates and overlong forms included), or npos.
std::size_t invalid_utf8_at(std::string_view text);

/// The code point that starts at byte `at` of valid UTF-8; `at` is moved behind it.
char32_t next_code_point(std::string_view text, std::size_t& at);
/// The code point that ends before byte `end` (> 0) of valid UTF-8; `end` is moved to its first byte.
char32_t previous_code_point(std::string_view text, std::size_t& end);

/// Bytes as text; each maximal ill-formed part becomes one U+FFFD.
std::string to_valid_utf8(std::string_view bytes);

/// The text in one line that does nothing to a terminal: control characters as \n, \t or \x1b, and so every byte that
/// is not part of well-formed UTF-8.
std::string printable(std::string_view bytes);

bool is_white_space(char32_t c);     // property White_Space
bool is_word_character(char32_t c);  // alphabetic, mark, decimal digit, connector or join control
bool is_number(char32_t c);          // general categories Nd, Nl, No

/// Canonical composition of valid UTF-8.
std::string normalize_nfc(std::string_view text);

/// The printable stand-in (one character, in UTF-8) of each byte in byte-level vocabularies, and its inverse.
const std::array<std::string, 256>& byte_characters();
int byte_of_character(char32_t c);  // -1 where `c` stands for no byte

}  // namespace distzo2
