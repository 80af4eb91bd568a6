// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// A deck as it was written, before anything is known of its keys: what YAML and XML are both read into.
struct DeckNode {
  enum class Kind { text, null, map, list };
  Kind kind = Kind::null;
  std::string key;      // name in the map it stands in
  std::string text;     // of a text: its characters, escapes resolved
  bool quoted = false;  // a text in quotes (XML: type="string"): never a number
  std::string place;    // "deck.yaml:12", or the option of the command line
  bool from_command_line = false;
  std::vector<DeckNode> children;  // of a map or list, in order
};

/// Appends to a map; Error(usage) with both places where the key stands in it already.
DeckNode& add_child(DeckNode& map, DeckNode child, const std::string& path);

const DeckNode* find_child(const DeckNode& map, std::string_view key);

/// The deck's tree; its root is a map. XML where the file's extension is .xml, else YAML. Error(file) where the file
/// cannot be read or is larger than a deck can be; Error(usage), naming file and line, where it is not well formed
/// UTF-8 or YAML or XML, is empty, has a key twice or nests more deeply than a deck can.
DeckNode read_deck_tree(const std::filesystem::path& file);

/// The same from a text; `source` stands in messages where the file's path would.
DeckNode parse_yaml_deck(std::string_view text, const std::string& source);
DeckNode parse_xml_deck(std::string_view text, const std::string& source);

/// `--set "sublist/key=value"` over a tree: replaces the key or adds it. A value in quotes is read as a quoted YAML
/// text, any other is taken as it stands.
void apply_set(DeckNode& root, const std::string& option);

/// Index of the first byte that is no well-formed UTF-8, or that is a control character other than tab and line ends;
/// npos where all is well.
std::size_t find_bad_utf8(std::string_view text);

constexpr std::size_t max_deck_bytes = std::size_t{1} << 18;
constexpr int max_deck_depth = 8;
constexpr std::size_t max_deck_keys = 1000;  // of one map

}  // namespace distzo2
