// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/changes.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace distzo2 {
namespace {

constexpr std::size_t most_bytes = 1 << 16;

/// Of binary formats: lengths and counts at which arithmetic goes wrong.
constexpr std::array<std::uint64_t, 10> lengths{
    0, 1, 7, 64, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};

/// Of texts: numbers likewise, and what opens, closes, escapes or joins.
constexpr std::array<std::string_view, 36> texts{
    "0",          "-1",         "1e999", "1e-400",       "NaN",     "18446744073709551616",
    "2147483648", "4294967295", "null",  "true",         "{",       "}",
    "[",          "]",          "\"",    "\\",           "\\u0000", "\\ud800",
    ",",          ":",          "[[[[",  "{\"a\":",      "../",     "/",
    "\t",         "\r\n",       "\n",    "\xEF\xBB\xBF", "\xFF",    "\xC3",
    "<!--",       "&#0;",       "- ",    "&a ",          "*a",      "${"};

/// Numbers of one seed (SplitMix64).
class Numbers {
public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return n == 0 ? 0 : (z ^ (z >> 31U)) % n;
  }

private:
  std::uint64_t state_;
};

std::string_view piece_of(std::string_view text, Numbers& numbers) {
  const std::size_t begin = numbers.below(text.size() + 1);
  return text.substr(begin, numbers.below(std::min<std::size_t>(text.size() - begin, 64) + 1));
}

void change(std::string& bytes, const std::vector<std::string>& others, Numbers& numbers) {
  const std::size_t at = numbers.below(bytes.size() + 1), left = bytes.size() - at;
  const std::size_t some = numbers.below(std::min<std::size_t>(left, 32) + 1);
  switch (numbers.below(8)) {
    case 0:
      if (left > 0) bytes[at] = static_cast<char>(bytes[at] ^ (1 << numbers.below(8)));
      break;
    case 1:
      if (left > 0) bytes[at] = static_cast<char>(numbers.below(256));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, some);
      break;
    case 4:
      bytes.insert(at, bytes.substr(at, some));
      break;
    case 5:
      bytes.replace(at, some, piece_of(others[numbers.below(others.size())], numbers));
      break;
    case 6:
      bytes.replace(at, numbers.below(2) * some, texts[numbers.below(texts.size())]);
      break;
    default:
      const std::uint64_t length = lengths[numbers.below(lengths.size())];
      const std::size_t width = numbers.below(2) == 0 ? sizeof(std::uint32_t) : sizeof length;
      std::memcpy(bytes.data() + at, &length, std::min(width, left));
  }
}

}  // namespace

std::string changed(const std::string& from, const std::vector<std::string>& others, std::uint64_t seed) {
  Numbers numbers(seed);
  std::string bytes = from;
  for (std::size_t i = numbers.below(4);; --i) {
    change(bytes, others, numbers);
    if (i == 0) break;
  }
  bytes.resize(std::min(bytes.size(), most_bytes));
  return bytes;
}

}  // namespace distzo2
