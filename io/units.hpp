// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distzo2 {

/// A number of the grammar 12, -0.5, 1e-6 in full, with nothing before or after it; nothing where the text is no such
/// number, is not finite or too large or too small for a double.
std::optional<double> parse_number(std::string_view text);

/// Whole numbers written with digits alone (one sign, no leading zeros); nothing where they do not fit 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

/// Seconds of "90 s", "1.5 h", "250 ms", "30 min", "2 d", "11:30:00" or "2-11:30:00" (days). A unit is needed.
std::optional<double> parse_duration(std::string_view text);

/// Bytes of "6 GiB", "512MiB", "1.5 TB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). A unit is needed.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// The shortest text that parse_number reads as the same value.
std::string number_text(double value);

/// A text that parse_duration reads as the same value: "90 s".
std::string duration_text(double seconds);

/// For people: "6.2 GiB", "512 B".
std::string bytes_text(std::uint64_t bytes);

/// The name that the writer of `wrong` most likely meant: equal but for case, or within a few edits; empty where none
/// is.
template <class Names>
std::string nearest_name(std::string_view wrong, const Names& names);

/// Number of insertions, deletions, replacements and swaps of neighbours between two texts, letters of either case
/// alike.
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Names>
std::string nearest_name(std::string_view wrong, const Names& names) {
  std::string best;
  std::size_t best_distance = wrong.size() < 5 ? 2 : 2 + wrong.size() / 4;  // one above the most that is believed
  for (const auto& name : names) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace distzo2
