// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck_key.hpp"

#include <fmt/format.h>

#include <Teuchos_ParameterListExceptions.hpp>
#include <algorithm>
#include <ostream>

#include "io/units.hpp"

namespace distzo2 {

namespace {

using Teuchos::ParameterEntry;

bool whole(KeyKind kind) {
  return kind == KeyKind::integer || kind == KeyKind::seed;
}

/// Bounds are whole where the values are, and then printed with all their digits.
std::string bound_text(double bound, KeyKind kind) {
  return whole(kind) ? fmt::format("{:.0f}", bound) : number_text(bound);
}

template <class T>
const T* value_of(const ParameterEntry& entry) {
  return entry.isType<T>() ? &Teuchos::getValue<T>(entry) : nullptr;
}

}  // namespace

std::string DeckKey::bounds() const {
  if (rule_.kind == KeyKind::seed) {
    return " from 0 to 18446744073709551615";
  }
  const std::string unit = rule_.kind == KeyKind::duration ? " s" : "";
  const std::string low = (rule_.above_min         ? " above "
                           : rule_.min < rule_.max ? " from "
                                                   : " of ") +
                          bound_text(rule_.min, rule_.kind) + unit;
  return low + (rule_.above_min ? " up to " : " to ") + bound_text(rule_.max, rule_.kind) + unit;
}

std::string DeckKey::accepted() const {
  std::string text;
  switch (rule_.kind) {
    case KeyKind::path:
      return "a path";
    case KeyKind::task:
      return "the name of a task, the path of its JSON file, or random tokens";
    case KeyKind::word:
      return fmt::format("{}", fmt::join(rule_.words, ", "));
    case KeyKind::boolean:
      return "true, false";
    case KeyKind::integer:
    case KeyKind::seed:
      text = "an integer" + bounds();
      break;
    case KeyKind::number:
      text = "a number" + bounds();
      break;
    case KeyKind::duration:
      text = "a time" + bounds() + " with its unit (90 s, 30 min, 1.5 h, 11:30:00)";
      break;
    case KeyKind::interval:
      text = "a number of steps (10) or a time above 0 s with its unit (5 s)";
      break;
    case KeyKind::bytes:
      text = "an amount of memory above 0 B with its unit (6 GiB, 512 MiB, 80 GB)";
      break;
  }
  if (!rule_.words.empty()) {
    text += fmt::format(", or {}", fmt::join(rule_.words, ", "));
  }
  return text;
}

std::string DeckKey::quantity_problem(const std::string& text) const {
  if (rule_.kind == KeyKind::interval) {
    const auto steps = parse_integer(text);
    const auto seconds = parse_duration(text);
    const bool good = (steps && *steps >= 1 && *steps <= 4294967295) || (seconds && *seconds > 0);
    return good ? "" : fmt::format("{} is not accepted; accepted: {}", text, accepted());
  }
  if (rule_.kind == KeyKind::bytes) {
    const auto bytes = parse_bytes(text);
    if (bytes && *bytes > 0) {
      return "";
    }
    const char* problem = bytes ? "is out of range" : parse_number(text) ? "has no unit" : "is no amount of memory";
    return fmt::format("{} {}; accepted: {}", text, problem, accepted());
  }
  std::optional<double> value;
  std::string wanted;
  if (whole(rule_.kind)) {
    wanted = "is no integer";
    if (const auto seed = parse_unsigned(text)) {
      value = static_cast<double>(*seed);
    } else if (const auto integer = parse_integer(text)) {
      value = static_cast<double>(*integer);
    } else if (!text.empty() && text.find_first_not_of("0123456789", text[0] == '-') == std::string::npos) {
      wanted = text.size() > 18 ? "is beyond 64 bits" : "has leading zeros";
    }
  } else if (rule_.kind == KeyKind::duration) {
    wanted = parse_number(text) ? "has no unit" : "is no time";
    value = parse_duration(text);
  } else {
    wanted = "is no number";
    value = parse_number(text);
  }
  if (value) {
    const bool seed = rule_.kind == KeyKind::seed;
    const bool low = seed ? *value < 0 : rule_.above_min ? *value <= rule_.min : *value < rule_.min;
    if (!low && (seed || *value <= rule_.max)) {
      return "";
    }
    wanted = "is out of range";
  }
  return fmt::format("{} {}; accepted: {}", text, wanted, accepted());
}

std::optional<ParameterEntry> DeckKey::convert(const std::string& text, bool quoted, std::string& problem) const {
  const bool is_word = std::find(rule_.words.begin(), rule_.words.end(), text) != rule_.words.end();
  ParameterEntry entry;
  if (is_path() || is_word) {
    entry.setValue(text);
    return entry;
  }
  if (rule_.kind == KeyKind::word) {
    const std::string near = nearest_name(text, rule_.words);
    problem = fmt::format("\"{}\" is not accepted{}; accepted: {}", text,
                          near.empty() ? near : fmt::format("; did you mean \"{}\"?", near), accepted());
    return std::nullopt;
  }
  if (rule_.kind == KeyKind::boolean) {
    if (quoted || (text != "true" && text != "false")) {
      problem = quoted ? fmt::format("\"{}\" is a text (in quotes); accepted: {} without quotes", text, accepted())
                       : fmt::format("{} is not accepted; accepted: {}", text, accepted());
      return std::nullopt;
    }
    entry.setValue(text == "true");
    return entry;
  }
  if (quoted && !parse_duration(text) && !parse_bytes(text)) {  // a quantity with its unit is a text in YAML too
    problem = fmt::format("\"{}\" is a text (in quotes); accepted: {}, without quotes", text, accepted());
    return std::nullopt;
  }
  problem = quantity_problem(text);
  if (!problem.empty()) {
    if (const std::string near = nearest_name(text, rule_.words); !near.empty()) {
      problem = fmt::format("\"{}\" is not accepted; did you mean \"{}\"? accepted: {}", text, near, accepted());
    }
    return std::nullopt;
  }
  if (!rule_.words.empty() || rule_.kind == KeyKind::interval || rule_.kind == KeyKind::bytes) {
    entry.setValue(text);
  } else if (rule_.kind == KeyKind::integer) {
    entry.setValue(static_cast<long long>(*parse_integer(text)));
  } else if (rule_.kind == KeyKind::seed) {
    entry.setValue(static_cast<unsigned long long>(*parse_unsigned(text)));
  } else {
    entry.setValue(rule_.kind == KeyKind::duration ? *parse_duration(text) : *parse_number(text));
  }
  return entry;
}

std::string DeckKey::text_of(const ParameterEntry& entry) const {
  if (const auto* text = value_of<std::string>(entry)) {
    return *text;
  }
  if (const auto* flag = value_of<bool>(entry)) {
    return *flag ? "true" : "false";
  }
  if (const auto* integer = value_of<long long>(entry)) {
    return fmt::format("{}", *integer);
  }
  if (const auto* seed = value_of<unsigned long long>(entry)) {
    return fmt::format("{}", *seed);
  }
  if (const auto* number = value_of<double>(entry)) {
    return rule_.kind == KeyKind::duration ? duration_text(*number) : number_text(*number);
  }
  return "";
}

std::string DeckKey::problem_of(const ParameterEntry& entry) const {
  std::string problem;
  const auto again = convert(text_of(entry), false, problem);
  if (again && again->getAny(false).type() != entry.getAny(false).type()) {
    return fmt::format("is held as {}, not as {}", entry.getAny(false).typeName(), again->getAny(false).typeName());
  }
  return problem;
}

void DeckKey::validate(const ParameterEntry& entry, const std::string& name, const std::string& sublist) const {
  const std::string problem = problem_of(entry);
  TEUCHOS_TEST_FOR_EXCEPTION_PURE_MSG(!problem.empty(), Teuchos::Exceptions::InvalidParameterValue,
                                      sublist << "/" << name << ": " << problem);
}

void DeckKey::printDoc(const std::string& doc, std::ostream& out) const {
  out << doc << "\nAccepted: " << accepted() << "\n";
}

DeckKey::ValidStringsList DeckKey::validStringValues() const {
  return rule_.kind == KeyKind::word
             ? Teuchos::rcp(new Teuchos::Array<std::string>(rule_.words.begin(), rule_.words.end()))
             : Teuchos::null;
}

}  // namespace distzo2
