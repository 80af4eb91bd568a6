// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>

#include "io/deck.hpp"

namespace distzo2 {

namespace {

using Teuchos::ParameterList;

std::string type_of(const DeckKey& key) {
  switch (key.rule().kind) {
    case KeyKind::path:
      return "path";
    case KeyKind::task:
      return "name or path";
    case KeyKind::word:
      return "word";
    case KeyKind::boolean:
      return "boolean";
    case KeyKind::integer:
      return "integer" + (key.rule().unit.empty() ? "" : " (" + key.rule().unit + ")");
    case KeyKind::seed:
      return "integer";
    case KeyKind::number:
      return "number";
    case KeyKind::duration:
      return "time";
    case KeyKind::interval:
      return "steps or time";
    case KeyKind::bytes:
      return "memory";
  }
  return "";
}

std::string default_of(const DeckKey& key, const Teuchos::ParameterEntry& entry) {
  const std::string text = key.text_of(entry);
  return key.rule().required ? "required" : text.empty() ? "left out" : text;
}

std::string in_a_table(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '|' ? "\\|" : std::string(1, c);
  }
  return out;
}

/// Goes through the valid list: on_section(name, meaning), then on_key(name, key, entry) of each of its keys.
template <class OnSection, class OnKey>
void walk(OnSection&& on_section, OnKey&& on_key) {
  for (const auto& section : valid_deck()) {
    on_section(section.first, section.second.docString());
    for (const auto& item : valid_deck().sublist(section.first)) {
      on_key(item.first, deck_key(section.first + "/" + item.first), item.second);
    }
  }
}

/// A comment of whole words, at most 116 characters a line.
std::string comment(const std::string& text, const std::string& indent) {
  std::string out;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!line.empty() && indent.size() + 2 + line.size() + 1 + word.size() > 116) {
      out += indent + "# " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    at = end + 1;
  }
  return out + indent + "# " + line + "\n";
}

}  // namespace

std::string deck_reference() {
  std::string out =
      "# The input deck\n\n"
      "<!-- Written by `distzo2 deck-docs`; the source is io/deck_valid_list.cpp. -->\n\n"
      "A deck is a YAML file, or an XML file in Teuchos' form (by its extension `.xml`), of the sublists below. Keys "
      "are "
      "written in lower case with blanks. An unknown key, a key given twice or a value of another type is refused with "
      "the file, the line and what is accepted. Numbers stand without quotes. Times have a unit: `250 ms`, `90 s`, "
      "`30 min`, `1.5 h`, `2 d`, `11:30:00`, `2-11:30:00`; so has memory: `6 GiB`, `80 GB`. In paths `~/` and `${VAR}` "
      "are expanded (an unset variable "
      "is "
      "an error), and a relative path is taken from the deck's folder. On the command line "
      "`--set \"zo/learning rate=1e-6\"` overrides a key by the same rules, its relative paths taken from the current "
      "folder; the last one of a key counts. An empty path leaves the key out. `distzo2 deck-docs --starter` prints a "
      "deck to start from.\n";
  walk(
      [&](const std::string& name, const std::string& doc) {
        out += fmt::format("\n## `{}`\n\n{}\n\n| key | type | default | accepted | meaning |\n|---|---|---|---|---|\n",
                           name, doc);
      },
      [&](const std::string& name, const DeckKey& key, const Teuchos::ParameterEntry& entry) {
        out += fmt::format("| `{}` | {} | {} | {} | {} |\n", name, type_of(key), default_of(key, entry), key.accepted(),
                           in_a_table(entry.docString()));
      });
  out +=
      "\n## The XML form\n\n```xml\n<ParameterList>\n  <ParameterList name=\"zo\">\n"
      "    <Parameter name=\"steps\" type=\"int\" value=\"1000\"/>\n"
      "    <Parameter name=\"learning rate\" type=\"double\" value=\"1e-6\"/>\n"
      "    <Parameter name=\"schedule\" type=\"string\" value=\"linear\"/>\n  "
      "</ParameterList>\n</ParameterList>\n```\n";
  return out;
}

std::string starter_deck() {
  std::string out =
      "# A deck to start from: every key at its default. Lines that begin with \"#-\" are keys that are left out.\n";
  walk(
      [&](const std::string& name, const std::string& doc) { out += fmt::format("\n{}{}:\n", comment(doc, ""), name); },
      [&](const std::string& name, const DeckKey& key, const Teuchos::ParameterEntry& entry) {
        out += comment(entry.docString(), "  ");
        if (key.rule().kind != KeyKind::path && key.rule().kind != KeyKind::task) {
          out += comment("Accepted: " + key.accepted() + ".", "  ");
        }
        const std::string text = key.text_of(entry);
        if (!key.rule().example.empty()) {
          out += fmt::format("  {}: {}\n", name, key.rule().example);
        } else {
          out +=
              text.empty() ? fmt::format("  #- {}: path/to/the/file\n", name) : fmt::format("  {}: {}\n", name, text);
        }
      });
  return out;
}

}  // namespace distzo2
