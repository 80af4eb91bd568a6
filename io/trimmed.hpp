// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace distzo2 {

/// The text without these characters at its ends.
inline std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace distzo2
