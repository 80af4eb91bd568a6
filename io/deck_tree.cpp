// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "io/json_file.hpp"
#include "io/trimmed.hpp"

namespace distzo2 {

namespace {

/// Bytes of the well-formed UTF-8 sequence at `at`, 0 where there is none (overlong forms and surrogates are none).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF && continues(1)) {
    return 2;
  }
  if (first >= 0xE0 && first <= 0xEF && continues(1) && continues(2)) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) && continues(3)) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

}  // namespace

std::size_t find_bad_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto c = static_cast<unsigned char>(text[at]);
    const std::size_t length = sequence_length(text, at);
    if (length == 0 || (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

const DeckNode* find_child(const DeckNode& map, std::string_view key) {
  const auto it = std::find_if(map.children.begin(), map.children.end(), [&](const auto& c) { return c.key == key; });
  return it == map.children.end() ? nullptr : &*it;
}

DeckNode& add_child(DeckNode& map, DeckNode child, const std::string& path) {
  if (const DeckNode* first = find_child(map, child.key)) {
    throw Error(ExitCode::usage, fmt::format("{}: {}: stands twice; it was first given at {}; keep one of them",
                                             child.place, path, first->place));
  }
  if (map.children.size() >= max_deck_keys) {
    throw Error(ExitCode::usage,
                fmt::format("{}: more than {} keys in one map; no deck has so many", child.place, max_deck_keys));
  }
  return map.children.emplace_back(std::move(child));
}

DeckNode read_deck_tree(const std::filesystem::path& file) {
  const std::string text = read_text_file(file, max_deck_bytes);
  const std::string source = file.string();
  if (const std::size_t bad = find_bad_utf8(text); bad != std::string::npos) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1;
    throw Error(
        ExitCode::usage,
        fmt::format("{}:{}: byte 0x{:02x} is not allowed here; a deck is text in UTF-8 without control characters",
                    source, line, static_cast<unsigned char>(text[bad])));
  }
  return file.extension() == ".xml" ? parse_xml_deck(text, source) : parse_yaml_deck(text, source);
}

void apply_set(DeckNode& root, const std::string& option) {
  const std::string place = fmt::format("--set \"{}\"", option);
  const std::size_t equals = option.find('=');
  const std::size_t slash = option.find('/');
  if (equals == std::string::npos || slash == std::string::npos || slash > equals) {
    throw Error(ExitCode::usage, place + ": accepted is sublist/key=value, for example \"zo/steps=100\"");
  }
  if (find_bad_utf8(option) != std::string::npos) {
    throw Error(ExitCode::usage, place + ": accepted is text in UTF-8 without control characters");
  }
  const std::string section(trimmed(option.substr(0, slash), " "));
  const std::string value(trimmed(option.substr(equals + 1), " "));

  DeckNode child;
  if (value.starts_with('"') || value.starts_with('\'')) {
    const DeckNode whole = parse_yaml_deck("value: " + value, place);
    if (whole.children.size() != 1 || whole.children[0].kind != DeckNode::Kind::text || !whole.children[0].quoted) {
      throw Error(ExitCode::usage, place + ": the value begins with a quote and is no quoted text");
    }
    child = whole.children[0];
  } else {
    child.kind = DeckNode::Kind::text;  // where it is empty: a path is left out, any other key has no value
    child.text = value;
  }
  child.key = trimmed(option.substr(slash + 1, equals - slash - 1), " ");
  child.place = place;
  child.from_command_line = true;

  auto it = std::find_if(root.children.begin(), root.children.end(), [&](const auto& c) { return c.key == section; });
  if (it == root.children.end()) {
    DeckNode list;
    list.kind = DeckNode::Kind::map;
    list.key = section;
    list.place = place;
    it = root.children.insert(it, std::move(list));
  }
  it->kind = it->kind == DeckNode::Kind::null ? DeckNode::Kind::map : it->kind;
  std::erase_if(it->children, [&](const auto& c) { return c.key == child.key; });
  it->children.push_back(std::move(child));
}

}  // namespace distzo2
