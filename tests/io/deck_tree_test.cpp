// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck_tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/deck_files.hpp"

namespace distzo2 {
namespace {

using Kind = DeckNode::Kind;

DeckNode yaml(const std::string& text) {
  return parse_yaml_deck(text, "deck.yaml");
}

std::string yaml_error(const std::string& text) {
  return error_of([&] { yaml(text); });
}

TEST(DeckYaml, keeps_texts_quotes_and_lines) {
  const DeckNode root = yaml("# a comment\nzo:\n  steps: 100\n  seed: \"7\"\n  kind: 'x'\ndata:\n  train:\n");
  ASSERT_EQ(root.children.size(), 2u);
  const DeckNode& zo = root.children[0];
  EXPECT_EQ(zo.key, "zo");
  EXPECT_EQ(zo.place, "deck.yaml:2");
  ASSERT_EQ(zo.children.size(), 3u);
  EXPECT_EQ(zo.children[0].text, "100");
  EXPECT_FALSE(zo.children[0].quoted);
  EXPECT_EQ(zo.children[0].place, "deck.yaml:3");
  EXPECT_EQ(zo.children[1].text, "7");
  EXPECT_TRUE(zo.children[1].quoted);
  EXPECT_TRUE(zo.children[2].quoted);
  EXPECT_EQ(root.children[1].children[0].kind, Kind::null);
}

TEST(DeckYaml, takes_escapes_and_non_ascii_exactly) {
  const DeckNode root = yaml("a: \"x\\ny\\t\\u00e9\\U0001F600\"\nb: naïve ☃ 😀\nc: 'a\\nb'\nd: \"\"\n");
  EXPECT_EQ(root.children[0].text, "x\ny\t\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(root.children[1].text, "na\xC3\xAFve \xE2\x98\x83 \xF0\x9F\x98\x80");
  EXPECT_EQ(root.children[2].text, "a\\nb");
  EXPECT_EQ(root.children[3].kind, Kind::text);
  EXPECT_TRUE(root.children[3].quoted);
}

TEST(DeckYaml, takes_what_teuchos_own_reader_fails_on) {
  const DeckNode root = yaml("a: ${X}/b\nb: 12:00:00\nc: 99999999999999999999\nd: [{x: 1}, {y: 2}]\ne: 1");
  EXPECT_EQ(root.children[0].text, "${X}/b");
  EXPECT_EQ(root.children[1].text, "12:00:00");
  EXPECT_EQ(root.children[2].text, "99999999999999999999");
  EXPECT_EQ(root.children[3].children[1].children[0].key, "y");
  EXPECT_EQ(root.children[4].text, "1");  // no newline at the end
}

TEST(DeckYaml, reads_windows_line_ends_and_a_byte_order_mark) {
  const DeckNode root = yaml("\xEF\xBB\xBFzo:\r\n  steps: 3\r\n  kind: gaussian\r\n");
  EXPECT_EQ(root.children[0].key, "zo");
  EXPECT_EQ(root.children[0].children[0].text, "3");
  EXPECT_EQ(root.children[0].children[1].text, "gaussian");
}

TEST(DeckYaml, refuses_a_key_given_twice_with_both_lines) {
  EXPECT_EQ(yaml_error("zo:\n  steps: 1\n  seed: 2\n  steps: 3\n"),
            "deck.yaml:4: zo/steps: stands twice; it was first given at deck.yaml:2; keep one of them");
  EXPECT_EQ(yaml_error("zo: {steps: 1}\ndata: {}\nzo: {seed: 1}\n"),
            "deck.yaml:3: zo: stands twice; it was first given at deck.yaml:1; keep one of them");
}

TEST(DeckYaml, refuses_what_is_no_map) {
  expect_parts(yaml_error(""), "deck.yaml", "empty");
  expect_parts(yaml_error("# only a comment\n"), "empty");
  expect_parts(yaml_error("- a\n- b\n"), "deck.yaml:1", "a list");
  expect_parts(yaml_error("hello\n"), "deck.yaml:1", "a single value");
  expect_parts(yaml_error("a: 1\n---\nb: 2\n"), "second YAML document");
}

TEST(DeckYaml, refuses_what_decks_do_not_need) {
  expect_parts(yaml_error("a: &x 1\nb: 2\n"), "deck.yaml:1", "&x");
  expect_parts(yaml_error("a: 1\nb: *x\n"), "deck.yaml:2");
  expect_parts(yaml_error("a: !!str 1\n"), "deck.yaml:1", "tag");
  expect_parts(yaml_error("a: [1, 2\nb: 3\n"), "deck.yaml:", "not valid YAML");
  expect_parts(yaml_error("a: 1\n  b: 2\n"), "deck.yaml:2", "not valid YAML");
  expect_parts(yaml_error("? [a]\n: 1\n"), "where a key is meant");
}

TEST(DeckYaml, refuses_deep_nesting_as_it_grows) {
  expect_parts(yaml_error("a: " + std::string(5000, '[') + std::string(5000, ']')), "deck.yaml:1", "more than 8 deep");
  std::string maps = "a:\n";
  for (int i = 1; i < 12; ++i) {
    maps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  }
  expect_parts(yaml_error(maps), "more than 8 deep");
}

TEST(DeckXml, reads_teuchos_form) {
  const DeckNode root = parse_xml_deck(
      "<?xml version=\"1.0\"?>\n<!-- a deck -->\n<ParameterList name=\"deck\">\n  <ParameterList name=\"zo\">\n"
      "    <Parameter name=\"steps\" type=\"int\" value=\"1234567890123\"/>\n"
      "    <Parameter name=\"kind\" type=\"string\" value=\"a&lt;b&amp;c&#233;&#x1F600;&#10;d\"/>\n"
      "  </ParameterList>\n</ParameterList>\n",
      "deck.xml");
  ASSERT_EQ(root.children.size(), 1u);
  const DeckNode& zo = root.children[0];
  EXPECT_EQ(zo.key, "zo");
  EXPECT_EQ(zo.place, "deck.xml:4");
  EXPECT_EQ(zo.children[0].text, "1234567890123");
  EXPECT_FALSE(zo.children[0].quoted);
  EXPECT_EQ(zo.children[0].place, "deck.xml:5");
  EXPECT_EQ(zo.children[1].text, "a<b&c\xC3\xA9\xF0\x9F\x98\x80\nd");
  EXPECT_TRUE(zo.children[1].quoted);
}

std::string xml_error(const std::string& inside) {
  return error_of([&] { parse_xml_deck("<ParameterList>\n" + inside + "\n</ParameterList>\n", "deck.xml"); });
}

TEST(DeckXml, refuses_duplicates) {
  EXPECT_EQ(
      xml_error("<Parameter name=\"a\" type=\"int\" value=\"1\"/>\n<Parameter name=\"a\" type=\"int\" value=\"2\"/>"),
      "deck.xml:3: a: stands twice; it was first given at deck.xml:2; keep one of them");
  expect_parts(xml_error("<Parameter name=\"a\" name=\"b\" type=\"int\" value=\"1\"/>"), "deck.xml:2", "\"name\"",
               "twice");
}

TEST(DeckXml, refuses_entities_it_does_not_know) {
  const auto value = [](const std::string& v) { return "<Parameter name=\"a\" type=\"string\" value=\"" + v + "\"/>"; };
  expect_parts(xml_error(value("&foo;")), "deck.xml:2", "&amp;");
  expect_parts(xml_error(value("a & b")), "deck.xml:2", "&amp;");
  expect_parts(xml_error(value("&#0;")), "deck.xml:2");
  expect_parts(error_of([] { parse_xml_deck("<!DOCTYPE d [<!ENTITY a \"b\">]>\n<ParameterList/>", "deck.xml"); }),
               "deck.xml:1", "DOCTYPE");
}

TEST(DeckXml, refuses_other_elements_attributes_and_text) {
  expect_parts(xml_error("<Paramter name=\"a\"/>"), "deck.xml:2", "<Paramter>", "<Parameter>");
  expect_parts(xml_error("<Parameter name=\"a\" typ=\"int\" value=\"1\"/>"), "\"typ\"", "did you mean \"type\"");
  expect_parts(xml_error("<Parameter name=\"a\" value=\"1\"/>"), "deck.xml:2", "no attribute \"type\"");
  expect_parts(xml_error("<Parameter name=\"a\" type=\"Array(int)\" value=\"1\"/>"), "Array(int)", "accepted: string");
  expect_parts(xml_error("some text"), "deck.xml:1", "text between the elements");
  expect_parts(error_of([] { parse_xml_deck("", "deck.xml"); }), "deck.xml", "empty");
  expect_parts(error_of([] { parse_xml_deck("<a/>", "deck.xml"); }), "one <ParameterList>");
  expect_parts(error_of([] { parse_xml_deck("<ParameterList>\n<Parameter name=", "deck.xml"); }), "deck.xml:2",
               "not valid XML");
  std::string deep;
  for (int i = 0; i < 5000; ++i) {
    deep += "<ParameterList name=\"a\">";
  }
  for (int i = 0; i < 5000; ++i) {
    deep += "</ParameterList>";
  }
  expect_parts(xml_error(deep), "more than 8 deep");
}

TEST(DeckTree, refuses_files_that_are_no_text_of_a_deck) {
  const DeckFolder folder;
  const auto read_error = [&](const std::string& bytes, ExitCode code = ExitCode::usage) {
    return error_of([&] { read_deck_tree(folder.write("deck.yaml", bytes)); }, folder.path(), code);
  };
  expect_parts(read_error("a: 1\nb: \xFF\n"), "deck.yaml:2", "0xff", "UTF-8");
  expect_parts(read_error("a: \xC0\xAF\n"), "deck.yaml:1", "UTF-8");      // overlong
  expect_parts(read_error("a: \xED\xA0\x80\n"), "deck.yaml:1", "UTF-8");  // a surrogate
  expect_parts(read_error(std::string("a: b\0c\n", 7)), "deck.yaml:1", "0x00");
  expect_parts(read_error(std::string(max_deck_bytes + 1, '#'), ExitCode::file), "deck.yaml", "262144");
  std::string many;
  for (int i = 0; i < 1500; ++i) {
    many += fmt::format("k{}: 1\n", i);
  }
  expect_parts(read_error(many), "deck.yaml:1001", "more than 1000 keys");
  expect_parts(error_of([&] { read_deck_tree(folder.path() / "none.yaml"); }, folder.path(), ExitCode::file),
               "none.yaml", "no such file");
  expect_parts(error_of([&] { read_deck_tree(folder.path()); }, {}, ExitCode::file), "regular file");
}

TEST(DeckTree, set_replaces_or_adds_a_key) {
  DeckNode root = yaml("zo:\n  steps: 1\n");
  apply_set(root, "zo/steps=5");
  apply_set(root, "zo/learning rate = 1e-6");
  apply_set(root, "data/task=a b #c: d");
  apply_set(root, "data/x=\"q\\n\"");
  const DeckNode& zo = root.children[0];
  ASSERT_EQ(zo.children.size(), 2u);
  EXPECT_EQ(zo.children[0].text, "5");
  EXPECT_EQ(zo.children[0].place, "--set \"zo/steps=5\"");
  EXPECT_EQ(zo.children[1].key, "learning rate");
  EXPECT_EQ(zo.children[1].text, "1e-6");
  EXPECT_TRUE(zo.children[1].from_command_line);
  EXPECT_EQ(root.children[1].children[0].text, "a b #c: d");
  EXPECT_EQ(root.children[1].children[1].text, "q\n");
  EXPECT_TRUE(root.children[1].children[1].quoted);
  for (const char* bad : {"zo", "zo/steps", "steps=1", "=", "a=b/c"}) {
    expect_parts(error_of([&] { apply_set(root, bad); }), std::string("--set \"") + bad, "sublist/key=value");
  }
  expect_parts(error_of([&] { apply_set(root, "data/x=\"open"); }), "--set \"data/x=\"open\"");
}

}  // namespace
}  // namespace distzo2
