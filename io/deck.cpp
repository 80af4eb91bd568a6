// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck.hpp"

#include <fmt/format.h>

#include <Teuchos_RCP.hpp>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "io/deck_tree.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace {

namespace fs = std::filesystem;
using Teuchos::ParameterList;

[[noreturn]] void refuse(const DeckNode& node, const std::string& path, const std::string& problem) {
  throw Error(ExitCode::usage, fmt::format("{}: {}: {}", node.place, path, problem));
}

std::vector<std::string> names_of(const ParameterList& list) {
  std::vector<std::string> names;
  for (const auto& item : list) {
    names.push_back(item.first);
  }
  return names;
}

const ParameterList& sublist_of(const ParameterList& deck, const std::string& section) {
  return deck.sublist(section);
}

/// Why a key is not in the list, and what was likely meant.
std::string unknown_key(const std::string& key, const std::string& section, const std::vector<std::string>& names) {
  const std::string accepted = fmt::format("accepted: {}", fmt::join(names, ", "));
  const std::string near = nearest_name(key, names);
  if (!near.empty() && edit_distance(key, near) == 0) {
    return fmt::format("unknown key; names are written in lower case: \"{}\"; {}", near, accepted);
  }
  if (!near.empty()) {
    return fmt::format("unknown key; did you mean \"{}\"? {}", near, accepted);
  }
  for (const std::string& other : names_of(valid_deck())) {
    if (other != section && sublist_of(valid_deck(), other).isParameter(key)) {
      return fmt::format("unknown key; did you mean \"{}/{}\"? {}", other, key, accepted);
    }
  }
  return "unknown key; " + accepted;
}

std::string environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') {
    return "";
  }
  return value;
}

/// Replaces `~/` in front and every `${NAME}`.
std::string expand(const std::string& text, const DeckNode& node, const std::string& path) {
  std::string out;
  std::string_view rest = text;
  if (rest == "~" || rest.starts_with("~/")) {
    out = environment("HOME");
    if (out.empty()) {
      refuse(node, path, "~ stands for the home folder, but the variable HOME is not set");
    }
    rest.remove_prefix(1);
  } else if (rest.starts_with('~')) {
    refuse(node, path, fmt::format("{} begins with ~; accepted is ~/ for your own home folder", text));
  }
  for (std::size_t at = rest.find("${"); at != std::string_view::npos; at = rest.find("${")) {
    const std::size_t end = rest.find('}', at);
    if (end == std::string_view::npos || end == at + 2) {
      refuse(node, path, fmt::format("\"{}\" holds ${{ without a name and its }}", text));
    }
    const std::string name(rest.substr(at + 2, end - at - 2));
    const std::string value = environment(name);
    if (value.empty()) {
      refuse(node, path,
             fmt::format("the variable ${{{}}} is not set; set it in the environment, or write the path", name));
    }
    out += rest.substr(0, at);
    out += value;
    rest.remove_prefix(end + 1);
  }
  out += rest;
  if (out.find("${") != std::string::npos || find_bad_utf8(out) != std::string::npos) {
    refuse(node, path, fmt::format("\"{}\" expands to \"{}\"; accepted is UTF-8 without a further ${{", text, out));
  }
  return out;
}

std::string absolute_path(const DeckNode& node, const std::string& path, const fs::path& deck_folder) {
  const fs::path written = expand(node.text, node, path);
  fs::path whole = ((node.from_command_line ? fs::current_path() : deck_folder) / written).lexically_normal();
  if (!whole.has_filename() && whole.has_relative_path()) {
    whole = whole.parent_path();  // "folder/" is "folder"
  }
  return whole.string();
}

bool names_a_file(const std::string& text) {
  return text.find('/') != std::string::npos || text.find("${") != std::string::npos || text.starts_with('~') ||
         text.ends_with(".json");
}

Teuchos::ParameterEntry convert_key(const DeckNode& node, const DeckKey& key, const std::string& path,
                                    const fs::path& deck_folder) {
  if (node.kind == DeckNode::Kind::map || node.kind == DeckNode::Kind::list) {
    refuse(node, path,
           fmt::format("is a {}; accepted: {}", node.kind == DeckNode::Kind::map ? "map" : "list", key.accepted()));
  }
  const bool left_out = node.kind == DeckNode::Kind::text && node.text.empty() && key.is_path() && !key.rule().required;
  if (node.kind == DeckNode::Kind::null || (node.text.empty() && !left_out)) {
    refuse(node, path, "has no value; accepted: " + key.accepted());
  }
  std::string text = node.text;
  const bool is_path = key.rule().kind == KeyKind::path || (key.rule().kind == KeyKind::task && names_a_file(text));
  if (is_path && !left_out) {
    text = absolute_path(node, path, deck_folder);
  }
  std::string problem;
  auto entry = key.convert(text, node.quoted, problem);
  if (!entry) {
    refuse(node, path, problem);
  }
  return *entry;
}

void convert_section(Deck& deck, const DeckNode& section, const fs::path& deck_folder) {
  if (section.kind == DeckNode::Kind::text || section.kind == DeckNode::Kind::list) {
    refuse(section, section.key,
           fmt::format("is a {}; a sublist of keys is meant: {}",
                       section.kind == DeckNode::Kind::list ? "list" : "single value",
                       fmt::join(names_of(sublist_of(valid_deck(), section.key)), ", ")));
  }
  const ParameterList& valid = sublist_of(valid_deck(), section.key);
  ParameterList& values = deck.values.sublist(section.key);
  for (const DeckNode& node : section.children) {
    const std::string path = section.key + "/" + node.key;
    if (!valid.isParameter(node.key)) {
      refuse(node, path, unknown_key(node.key, section.key, names_of(valid)));
    }
    values.setEntry(node.key, convert_key(node, deck_key(path), path, deck_folder));
    deck.places[path] = node.place;
  }
}

}  // namespace

const DeckKey& deck_key(const std::string& path) {
  const std::size_t slash = path.find('/');
  const auto& entry = sublist_of(valid_deck(), path.substr(0, slash)).getEntry(path.substr(slash + 1));
  return *Teuchos::rcp_dynamic_cast<const DeckKey>(entry.validator(), true);
}

void refuse_key(const Deck& deck, const std::string& path, const std::string& problem) {
  const auto place = deck.places.find(path);
  throw Error(
      ExitCode::usage,
      fmt::format("{}: {}: {}", place == deck.places.end() ? deck.file.string() : place->second, path, problem));
}

Deck read_deck(const fs::path& file, const std::vector<std::string>& sets) {
  DeckNode root = read_deck_tree(file);
  for (const std::string& option : sets) {
    apply_set(root, option);
  }
  const fs::path deck_folder = fs::absolute(file).parent_path();
  Deck deck;
  deck.file = file;
  const std::vector<std::string> sections = names_of(valid_deck());
  for (const std::string& name : sections) {
    deck.values.sublist(name);  // in the valid list's order, whatever the deck's
  }
  for (const DeckNode& section : root.children) {
    if (!valid_deck().isSublist(section.key)) {
      refuse(section, section.key, unknown_key(section.key, "", sections));
    }
    convert_section(deck, section, deck_folder);
  }
  deck.values.validateParametersAndSetDefaults(valid_deck());
  for (const std::string& name : sections) {
    for (const std::string& key : names_of(sublist_of(valid_deck(), name))) {
      const std::string path = name + "/" + key;
      if (deck_key(path).rule().required && !deck.places.contains(path)) {
        throw Error(ExitCode::usage, fmt::format("{}: {}: is required and missing; accepted: {}", file.string(), path,
                                                 deck_key(path).accepted()));
      }
    }
  }
  return deck;
}

std::string deck_yaml(const ParameterList& values) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (c == '\n' || c == '\t' || c == '\r') {
        out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
      } else {
        out += c;
      }
    }
    return out + "\"";
  };
  std::string out;
  for (const std::string& section : names_of(valid_deck())) {
    out += section + ":\n";
    for (const std::string& name : names_of(sublist_of(valid_deck(), section))) {
      const DeckKey& key = deck_key(section + "/" + name);
      const std::string text = key.text_of(sublist_of(values, section).getEntry(name));
      if (!text.empty()) {
        out += fmt::format("  {}: {}\n", name, key.is_path() ? quoted(text) : text);
      }
    }
  }
  return out;
}

}  // namespace distzo2
