// SPDX-License-Identifier: BSD-3-Clause
#include "io/tokenizer_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace distzo2 {

namespace {

constexpr std::size_t max_sequence_steps = 64;  // of a sequence; tokenizers have a handful

}  // namespace

void accept_only(const JsonObject& object, std::initializer_list<std::string_view> keys) {
  for (const auto& entry : object.raw().items()) {
    if (std::find(keys.begin(), keys.end(), entry.key()) == keys.end()) {
      object.refuse(entry.key(), fmt::format("this key is not supported here; accepted are {}", fmt::join(keys, ", ")));
    }
  }
}

std::vector<JsonObject> flatten_sequence(const JsonObject& object, const std::string& list) {
  if (object.string("type") != "Sequence") {
    return {object};
  }
  accept_only(object, {"type", list});
  std::vector<JsonObject> members;
  const auto& array = object.array(list);
  for (std::size_t i = 0; i < array.size(); ++i) {
    const JsonObject member(array[i], object.file(), fmt::format("{}[{}]", object.path_of(list), i));
    for (JsonObject& inner : flatten_sequence(member, list)) {
      members.push_back(std::move(inner));
    }
    if (members.size() > max_sequence_steps) {
      object.refuse(list, fmt::format("at most {} steps are accepted", max_sequence_steps));
    }
  }
  return members;
}

PatternSource pattern_of(const JsonObject& object) {
  const JsonObject pattern = object.object("pattern");
  accept_only(pattern, {"String", "Regex"});
  const bool is_regex = pattern.present("Regex");
  if (is_regex == pattern.present("String")) {
    object.refuse("pattern", "either {\"String\": ...} or {\"Regex\": ...} was expected");
  }
  return {pattern.string(is_regex ? "Regex" : "String"), is_regex};
}

}  // namespace distzo2
