// SPDX-License-Identifier: BSD-3-Clause
#include "io/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace distzo2 {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t digits_from(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_digit(text[end])) {
    ++end;
  }
  return end - begin;
}

/// from_chars takes no '+', and would take "inf", hexadecimal digits are no part of "general".
std::string_view without_plus(std::string_view text) {
  return text.starts_with('+') ? text.substr(1) : text;
}

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits_from(digits, 0) != digits.size() || (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

struct Quantity {
  double value;
  std::string_view unit;
};

/// Splits "1.5 GiB" or "90s"; nothing where either part is missing.
std::optional<Quantity> split_quantity(std::string_view text) {
  const std::size_t letter = text.find_first_not_of("0123456789.+-");
  if (letter == std::string_view::npos || letter == 0) {
    return std::nullopt;
  }
  const std::size_t unit = text.find_first_not_of(' ', letter);
  if (unit == std::string_view::npos) {
    return std::nullopt;
  }
  const auto value = parse_number(text.substr(0, letter));
  if (!value || *value < 0) {
    return std::nullopt;
  }
  return Quantity{*value, text.substr(unit)};
}

/// "11:30:00" and Slurm's "2-11:30:00".
std::optional<double> parse_clock(std::string_view text) {
  std::uint64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto value = parse_unsigned(text.substr(0, dash));
    if (!value || *value > 100000) {
      return std::nullopt;
    }
    days = *value;
    text.remove_prefix(dash + 1);
  }
  const std::size_t hour_digits = digits_from(text, 0);
  if (hour_digits < 1 || hour_digits > 5 || text.size() != hour_digits + 6 || text[hour_digits] != ':' ||
      text[hour_digits + 3] != ':' || digits_from(text, hour_digits + 1) != 2 ||
      digits_from(text, hour_digits + 4) != 2) {
    return std::nullopt;
  }
  int hours = 0;
  std::from_chars(text.data(), text.data() + hour_digits, hours);
  const auto two_digits = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const int minutes = two_digits(hour_digits + 1);
  const int seconds = two_digits(hour_digits + 4);
  if (minutes > 59 || seconds > 59) {
    return std::nullopt;
  }
  return static_cast<double>(days) * 86400.0 + hours * 3600.0 + minutes * 60.0 + seconds;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const std::string_view body = without_plus(text);
  std::size_t at = body.starts_with('-') && text == body ? 1 : 0;
  const std::size_t whole = digits_from(body, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < body.size() && body[at] == '.') {
    fraction = digits_from(body, at + 1);
    at += 1 + fraction;
  }
  if (whole + fraction == 0) {
    return std::nullopt;
  }
  if (at < body.size() && (body[at] == 'e' || body[at] == 'E')) {
    ++at;
    at += at < body.size() && (body[at] == '+' || body[at] == '-') ? 1 : 0;
    const std::size_t exponent = digits_from(body, at);
    if (exponent == 0) {
      return std::nullopt;
    }
    at += exponent;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (at != body.size() || error != std::errc() || end != body.data() + body.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_duration(std::string_view text) {
  if (text.find(':') != std::string_view::npos) {
    return parse_clock(text);
  }
  static constexpr std::array<std::pair<std::string_view, double>, 5> units{
      {{"ms", 1e-3}, {"s", 1.0}, {"min", 60.0}, {"h", 3600.0}, {"d", 86400.0}}};
  const auto quantity = split_quantity(text);
  if (!quantity) {
    return std::nullopt;
  }
  for (const auto& [unit, seconds] : units) {
    if (quantity->unit == unit) {
      return unit == "ms" ? quantity->value / 1000.0 : quantity->value * seconds;
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 9> units{{{"B", 1.0},
                                                                             {"kB", 1e3},
                                                                             {"KiB", 1024.0},
                                                                             {"MB", 1e6},
                                                                             {"MiB", 1048576.0},
                                                                             {"GB", 1e9},
                                                                             {"GiB", 1073741824.0},
                                                                             {"TB", 1e12},
                                                                             {"TiB", 1099511627776.0}}};
  const auto quantity = split_quantity(text);
  if (!quantity) {
    return std::nullopt;
  }
  for (const auto& [unit, bytes] : units) {
    if (quantity->unit == unit) {
      const double value = std::floor(quantity->value * bytes);
      return value < 9.2e18 ? std::optional(static_cast<std::uint64_t>(value)) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), error == std::errc() ? end : text.data()};
}

std::string duration_text(double seconds) {
  // parse_duration takes no exponent before a unit
  std::array<char, 400> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  return std::string(text.data(), error == std::errc() ? end : text.data()) + " s";
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, unit == 0 ? 0 : 1);
  return std::string(text.data(), error == std::errc() ? end : text.data()) + " " + units[unit];
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (a.size() > 200 || b.size() > 200) {
    return std::max(a.size(), b.size());  // no name of ours: not worth a table
  }
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t differ = low(a[i - 1]) == low(b[j - 1]) ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differ});
      if (i > 1 && j > 1 && low(a[i - 1]) == low(b[j - 2]) && low(a[i - 2]) == low(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace distzo2
