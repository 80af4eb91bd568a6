// SPDX-License-Identifier: BSD-3-Clause
#include "io/unicode.hpp"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "io/fail.hpp"

namespace distzo2 {

namespace {

/// ICU counts in int32_t.
std::int32_t icu_length(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    fail(fmt::format("a text of {} bytes; at most 2^31 - 1 are accepted", text.size()));
  }
  return static_cast<std::int32_t>(text.size());
}

// ICU's macro narrows within itself.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
/// The code point at byte `at`, negative where it is ill-formed; `at` is moved behind it.
UChar32 checked_next(std::string_view text, std::int32_t& at, std::int32_t length) {
  const auto* s = reinterpret_cast<const std::uint8_t*>(text.data());
  UChar32 c = 0;
  U8_NEXT(s, at, length, c);
  return c;
}
#pragma GCC diagnostic pop

UChar32 as_icu(char32_t c) {
  return static_cast<UChar32>(c);
}

}  // namespace

std::size_t invalid_utf8_at(std::string_view text) {
  const std::int32_t length = icu_length(text);
  for (std::int32_t i = 0; i < length;) {
    const std::int32_t start = i;
    if (checked_next(text, i, length) < 0) {
      return static_cast<std::size_t>(start);
    }
  }
  return std::string_view::npos;
}

char32_t next_code_point(std::string_view text, std::size_t& at) {
  UChar32 c = 0;
  U8_NEXT_UNSAFE(reinterpret_cast<const std::uint8_t*>(text.data()), at, c);
  return static_cast<char32_t>(c);
}

char32_t previous_code_point(std::string_view text, std::size_t& end) {
  do {
    --end;
  } while ((static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
  std::size_t at = end;
  return next_code_point(text, at);
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  const std::int32_t length = icu_length(bytes);
  for (std::int32_t i = 0; i < length;) {
    const std::int32_t start = i;
    if (checked_next(bytes, i, length) < 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(bytes, static_cast<std::size_t>(start), static_cast<std::size_t>(i - start));
    }
  }
  return out;
}

std::string printable(std::string_view bytes) {
  std::string text;
  const auto escape = [&](std::string_view part) {
    for (const char c : part)
      text += c == '\n' ? "\\n" : c == '\t' ? "\\t" : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  };
  while (!bytes.empty()) {
    const std::size_t valid = std::min(invalid_utf8_at(bytes), bytes.size());
    for (std::size_t at = 0, begin = 0; at < valid; begin = at) {
      const char32_t c = next_code_point(bytes, at);
      const std::string_view character = bytes.substr(begin, at - begin);
      if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        escape(character);
      else
        text += character;
    }
    bytes.remove_prefix(valid);
    escape(bytes.substr(0, 1));
    bytes.remove_prefix(std::min<std::size_t>(1, bytes.size()));
  }
  return text;
}

bool is_white_space(char32_t c) {
  return u_isUWhiteSpace(as_icu(c)) != 0;
}

bool is_word_character(char32_t c) {
  constexpr std::uint32_t categories = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return (U_GET_GC_MASK(as_icu(c)) & categories) != 0 || u_isUAlphabetic(as_icu(c)) != 0 ||
         u_hasBinaryProperty(as_icu(c), UCHAR_JOIN_CONTROL) != 0;
}

bool is_number(char32_t c) {
  return (U_GET_GC_MASK(as_icu(c)) & U_GC_N_MASK) != 0;
}

std::string normalize_nfc(std::string_view text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(status);
  std::string out;
  if (U_SUCCESS(status)) {
    icu::StringByteSink<std::string> sink(&out, icu_length(text));
    nfc->normalizeUTF8(0, icu::StringPiece(text.data(), icu_length(text)), sink, nullptr, status);
  }
  if (U_FAILURE(status)) {
    throw Error(ExitCode::internal, fmt::format("ICU could not compose a text: {}", u_errorName(status)));
  }
  return out;
}

const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> characters;
    std::uint32_t stand_in = 256;  // bytes without a printable Latin-1 character take the code points from here on
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const std::uint32_t c = printable ? byte : stand_in++;
      if (c < 128) {
        characters[byte] = static_cast<char>(c);
      } else {
        characters[byte] = {static_cast<char>(0xC0U | (c >> 6U)), static_cast<char>(0x80U | (c & 0x3FU))};
      }
    }
    return characters;
  }();
  return table;
}

int byte_of_character(char32_t c) {
  constexpr std::size_t characters = 324;  // 256 + the 68 stand-ins
  static const std::array<int, characters> inverse = [] {
    std::array<int, characters> bytes;
    bytes.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      std::size_t at = 0;
      bytes[next_code_point(byte_characters()[static_cast<std::size_t>(byte)], at)] = byte;
    }
    return bytes;
  }();
  return c < characters ? inverse[c] : -1;
}

}  // namespace distzo2
