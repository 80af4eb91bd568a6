// SPDX-License-Identifier: BSD-3-Clause
#include "io/json_file.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "tests/io/expect_error.hpp"

namespace {

using namespace distzo2;

std::string parse_error(const std::string& text, const JsonLimits& limits = {}) {
  return file_error([&] { parse_json(text, "x.json", limits); });
}

TEST(JsonFile, builds_the_value_that_stands_in_the_text) {
  const auto v =
      parse_json(R"({"a": [1, -2, 2.5, true, null, "é\n"], "b": {"c": {}}, "big": 18446744073709551615})", "x");
  EXPECT_EQ(v["a"][0].get<int>(), 1);
  EXPECT_EQ(v["a"][1].get<int>(), -2);
  EXPECT_EQ(v["a"][2].get<double>(), 2.5);
  EXPECT_TRUE(v["a"][3].get<bool>());
  EXPECT_TRUE(v["a"][4].is_null());
  EXPECT_EQ(v["a"][5].get<std::string>(), "\xc3\xa9\n");
  EXPECT_TRUE(v["b"]["c"].empty());
  EXPECT_EQ(v["big"].get<std::uint64_t>(), 18446744073709551615ULL);
}

TEST(JsonFile, refuses_a_duplicate_key_with_its_place) {
  const auto message = parse_error("{\"a\": 1,\n \"b\": {\"c\": 1,\n  \"c\": 2}}");
  expect_contains(message, "x.json: line 3, column 5");
  expect_contains(message, "\"c\" stands twice");
}

TEST(JsonFile, allows_one_key_in_two_objects) {
  EXPECT_EQ(parse_json(R"({"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]})", "x")["b"][1]["a"].get<int>(), 3);
}

TEST(JsonFile, refuses_nesting_beyond_the_limit) {
  EXPECT_NO_THROW(parse_json(std::string(64, '[') + std::string(64, ']'), "x"));
  expect_contains(parse_error(std::string(65, '[') + std::string(65, ']')),
                  "column 65: arrays and objects nested more");
  expect_contains(parse_error(std::string(1 << 20, '[')), "nested more than 64 deep");
  expect_contains(parse_error(R"({"a":{"b":1}})", {.max_depth = 1}), "nested more than 1 deep");
}

TEST(JsonFile, names_line_and_column_of_a_syntax_error) {
  const auto message = parse_error("{\n  \"a\": 1,\n  \"b\": tru\n}");
  expect_contains(message, "x.json: line 3, column");
  expect_contains(message, "not valid JSON");
  expect_contains(parse_error("{\"a\": 1} x"), "line 1, column 10");
  expect_contains(parse_error("{\"a\": \"\xff\"}"), "UTF-8");
  expect_contains(parse_error("[1e400]"), "number overflow");
  expect_contains(parse_error(std::string("{}\0{", 4)), "line 1, column 3: not valid JSON: a zero byte");
  expect_contains(parse_error(" \n"), "empty");
}

TEST(JsonFile, refuses_every_truncation) {
  const std::string text = R"({"a": [1, "b", {"c": false}], "d": null})";
  for (std::size_t n = 0; n < text.size(); ++n) {
    expect_contains(parse_error(text.substr(0, n)), "x.json");
  }
}

TEST(JsonFile, refuses_files_that_are_missing_large_or_no_files) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "distzo2_json_file";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "ok.json") << "{\"a\": 7}";
  EXPECT_EQ(read_json_file(folder / "ok.json")["a"].get<int>(), 7);
  expect_contains(file_error([&] { read_json_file(folder / "none.json"); }), "none.json: no such file");
  expect_contains(file_error([&] { read_json_file(folder); }), "not a regular file");
  expect_contains(file_error([&] { read_json_file("/dev/zero"); }), "not a regular file");
  expect_contains(file_error([&] { read_json_file(folder / "ok.json", {.max_bytes = 7}); }), "8 bytes; at most 7");
  std::filesystem::remove_all(folder);
}

TEST(JsonObject, reads_typed_values_and_defaults) {
  const auto v = parse_json(R"({"i": 5, "x": 2, "b": true, "s": "t", "o": {"k": 1}, "n": null})", "c.json");
  const JsonObject o(v, "c.json");
  EXPECT_EQ(o.integer("i", 1, 5), 5);
  EXPECT_EQ(o.number("x"), 2.0);
  EXPECT_TRUE(o.boolean("b"));
  EXPECT_EQ(o.string("s"), "t");
  EXPECT_EQ(o.object("o").integer("k"), 1);
  EXPECT_FALSE(o.has("n"));
  EXPECT_TRUE(o.present("n"));
  EXPECT_EQ(o.integer_or("n", 9, 0, 10), 9);
  EXPECT_EQ(o.number_or("none", 0.5), 0.5);
  EXPECT_EQ(o.string_or("none", "d"), "d");
  EXPECT_TRUE(o.boolean_or("none", true));
}

TEST(JsonObject, refuses_wrong_types_naming_file_key_and_value) {
  const auto v = parse_json(R"({"i": 6, "f": 1.5, "big": 9223372036854775808, "s": "5", "o": {"k": []}})", "c.json");
  const JsonObject o(v, "c.json");
  EXPECT_EQ(file_error([&] { o.integer("i", 1, 5); }), "c.json: key \"i\" is 6; an integer from 1 to 5 was expected");
  expect_contains(file_error([&] { o.integer("f"); }), "\"f\" is 1.5; an integer");
  expect_contains(file_error([&] { o.integer("big"); }), "an integer");
  expect_contains(file_error([&] { o.number("s"); }), "\"s\" is \"5\"; a number");
  expect_contains(file_error([&] { o.integer("none"); }), "\"none\" is missing");
  expect_contains(file_error([&] { o.object("o").string("k"); }), "\"o.k\" is []; a text");
  expect_contains(file_error([&] { o.object("i"); }), "an object");
  expect_contains(file_error([&] { o.array("i"); }), "an array");
  expect_contains(file_error([&] { o.boolean("i"); }), "true or false");
  expect_contains(file_error([&] { JsonObject(v["i"], "c.json"); }), "the whole file is 6");
}

}  // namespace
