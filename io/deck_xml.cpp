// SPDX-License-Identifier: BSD-3-Clause
// Teuchos' XML form by pugixml: <ParameterList><ParameterList name="zo"><Parameter name="steps" type="int"
// value="9"/>...
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "io/deck_tree.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace {

class XmlReader {
public:
  XmlReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  DeckNode read() {
    check_entities();
    pugi::xml_document document;
    const unsigned options = (pugi::parse_default | pugi::parse_doctype | pugi::parse_ws_pcdata_single) &
                             ~static_cast<unsigned>(pugi::parse_wconv_attribute);
    const auto result = document.load_buffer(text_.data(), text_.size(), options, pugi::encoding_utf8);
    if (result.status == pugi::status_no_document_element) {
      throw Error(ExitCode::usage, source_ + ": empty; a deck in XML is a <ParameterList> of <ParameterList name=...>");
    }
    if (!result) {
      refuse(result.offset, fmt::format("not valid XML: {}", result.description()));
    }
    int roots = 0;
    for (const pugi::xml_node node : document) {
      if (node.type() == pugi::node_doctype) {
        refuse(node.offset_debug(), "decks take no DOCTYPE and no entities of their own");
      }
      roots += node.type() == pugi::node_element ? 1 : 0;
    }
    const pugi::xml_node root = document.document_element();
    if (roots != 1 || std::string_view(root.name()) != "ParameterList") {
      refuse(root.offset_debug(), "a deck in XML is one <ParameterList>");
    }
    return read_list(root, "", 1);
  }

private:
  std::string place(std::ptrdiff_t offset) const {
    const auto end = text_.begin() + std::clamp<std::ptrdiff_t>(offset, 0, static_cast<std::ptrdiff_t>(text_.size()));
    return fmt::format("{}:{}", source_, std::count(text_.begin(), end, '\n') + 1);
  }

  [[noreturn]] void refuse(std::ptrdiff_t offset, const std::string& problem) const {
    throw Error(ExitCode::usage, fmt::format("{}: {}", place(offset), problem));
  }

  /// "amp" or "#233" or "#xE9": an entity that every XML reader knows, and that stands for a character decks may hold
  /// (a NUL would end the value).
  static bool is_entity(std::string_view name) {
    static constexpr std::array<std::string_view, 5> known{"lt", "gt", "amp", "apos", "quot"};
    if (!name.starts_with('#')) {
      return std::find(known.begin(), known.end(), name) != known.end();
    }
    const bool hexadecimal = name.starts_with("#x");
    const std::string_view digits = name.substr(hexadecimal ? 2 : 1);
    std::uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hexadecimal ? 16 : 10);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
    return error == std::errc() && end == digits.data() + digits.size() && !surrogate && !control && code <= 0x10FFFF;
  }

  /// pugixml leaves an entity that it does not know, or a bare &, as it stands: refused here, in the text.
  void check_entities() const {
    std::size_t at = 0;
    while ((at = text_.find_first_of("&<", at)) != std::string_view::npos) {
      const std::string_view rest = text_.substr(at);
      if (rest.starts_with("<!--") || rest.starts_with("<![CDATA[")) {
        at = std::min(text_.find(rest[2] == '-' ? "-->" : "]]>", at), text_.size());
        continue;
      }
      const std::size_t end = rest.substr(0, 12).find(';');
      if (rest[0] == '&' && (end == std::string_view::npos || !is_entity(rest.substr(1, end - 1)))) {
        refuse(static_cast<std::ptrdiff_t>(at),
               "an & that begins none of &lt; &gt; &amp; &apos; &quot; &#N; &#xN; (a character decks may hold); write "
               "&amp; for the character itself");
      }
      ++at;
    }
  }

  /// The attributes Teuchos writes; those a deck does not need are read over.
  void check_attributes(const pugi::xml_node& node) const {
    static constexpr std::array<std::string_view, 8> known{"name",   "type",      "value",     "id",
                                                           "isUsed", "isDefault", "docString", "validatorId"};
    for (auto a = node.first_attribute(); a; a = a.next_attribute()) {
      if (std::find(known.begin(), known.end(), std::string_view(a.name())) == known.end()) {
        const std::string near = nearest_name(a.name(), known);
        refuse(node.offset_debug(),
               fmt::format("attribute \"{}\" of <{}> is unknown{}; accepted: {}", a.name(), node.name(),
                           near.empty() ? near : fmt::format("; did you mean \"{}\"?", near), fmt::join(known, ", ")));
      }
      for (auto b = a.next_attribute(); b; b = b.next_attribute()) {
        if (std::string_view(a.name()) == b.name()) {
          refuse(node.offset_debug(), fmt::format("attribute \"{}\" of <{}> stands twice", a.name(), node.name()));
        }
      }
    }
  }

  std::string required(const pugi::xml_node& node, const char* name) const {
    const auto attribute = node.attribute(name);
    if (!attribute) {
      refuse(node.offset_debug(), fmt::format("<{}> has no attribute \"{}\"", node.name(), name));
    }
    const std::string value = attribute.value();
    if (find_bad_utf8(value) != std::string::npos) {
      refuse(node.offset_debug(), fmt::format("attribute \"{}\" holds a character that is not allowed", name));
    }
    return value;
  }

  DeckNode read_parameter(const pugi::xml_node& node) const {
    static constexpr std::array<std::string_view, 10> plain{
        "int",  "short", "long",  "long long", "unsigned int", "unsigned long", "unsigned long long",
        "bool", "float", "double"};
    DeckNode parameter;
    parameter.kind = DeckNode::Kind::text;
    parameter.text = required(node, "value");
    const std::string type = required(node, "type");
    parameter.quoted = type == "string";
    if (!parameter.quoted && std::find(plain.begin(), plain.end(), type) == plain.end()) {
      refuse(node.offset_debug(),
             fmt::format("type=\"{}\" is unknown; accepted: string, {}", type, fmt::join(plain, ", ")));
    }
    if (node.first_child()) {
      refuse(node.offset_debug(), "<Parameter> holds nothing but its attributes");
    }
    return parameter;
  }

  DeckNode read_list(const pugi::xml_node& list, const std::string& path, int depth) const {
    if (depth > max_deck_depth) {
      refuse(list.offset_debug(),
             fmt::format("lists nested more than {} deep; a deck has sublists of parameters", max_deck_depth));
    }
    check_attributes(list);
    DeckNode map;
    map.kind = DeckNode::Kind::map;
    map.place = place(list.offset_debug());
    for (const pugi::xml_node node : list) {
      const std::string_view name = node.name();
      if (node.type() == pugi::node_element && (name == "ParameterList" || name == "Parameter")) {
        check_attributes(node);
        const std::string key = required(node, "name");
        DeckNode child = name == "Parameter" ? read_parameter(node) : read_list(node, path + key + "/", depth + 1);
        child.key = key;
        child.place = place(node.offset_debug());
        add_child(map, std::move(child), path + key);
      } else if (node.type() == pugi::node_element) {
        refuse(node.offset_debug(), fmt::format("<{}> is unknown; accepted: <ParameterList>, <Parameter>", name));
      } else if (std::string_view(node.value()).find_first_not_of(" \t\r\n") != std::string_view::npos) {
        refuse(node.offset_debug(), "text between the elements; values stand in the attribute \"value\"");
      }
    }
    return map;
  }

  std::string_view text_;
  std::string source_;
};

}  // namespace

DeckNode parse_xml_deck(std::string_view text, const std::string& source) {
  return XmlReader(text, source).read();
}

}  // namespace distzo2
