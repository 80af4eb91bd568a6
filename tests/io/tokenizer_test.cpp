// SPDX-License-Identifier: BSD-3-Clause
#include "io/tokenizer.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/io/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {

namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// A tokenizer small enough to work out by hand.
json small_tokenizer() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
    "added_tokens": [{"id": 9, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": false},
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "<unk>": 6},
              "unk_token": "<unk>", "merges": [["b", "c"], ["a", "bc"], ["a", "b"]]}})");
}

class Folder {
public:
  Folder& put(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return *this;
  }
  Folder& put(const std::string& name, const json& value) { return put(name, value.dump()); }
  Tokenizer load() const { return Tokenizer::from_folder(folder_.path()); }
  /// The one message that loading ends in.
  std::string refusal() const {
    return file_error([this] { load(); });
  }

private:
  TemporaryFolder folder_;
};

/// What loading the small tokenizer after `change` ends in.
std::string refusal_after(const std::function<void(json&)>& change) {
  json value = small_tokenizer();
  change(value);
  return Folder().put("tokenizer.json", value).refusal();
}

void expect_all(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    expect_contains(message, part);
  }
}

}  // namespace

TEST(Tokenizer, merges_in_order_of_rank) {
  const Tokenizer tokenizer = Folder().put("tokenizer.json", small_tokenizer()).load();
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{5}));            // b c, then a bc
  EXPECT_EQ(tokenizer.encode("ab abab"), (Ids{3, 3, 3}));  // a b has the last rank, and no c is there
  EXPECT_EQ(tokenizer.encode("a<end>bx"), (Ids{0, 9, 1, 6}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.decode(Ids{5, 9, 0}), "abc<end>a");
}

TEST(Tokenizer, takes_the_leftmost_of_equal_pairs) {
  json value = small_tokenizer();
  value["model"]["vocab"] = {{"a", 0}, {"aa", 1}};
  value["model"]["merges"] = {"a a"};
  EXPECT_EQ(Folder().put("tokenizer.json", value).load().encode("aaaaa"), (Ids{1, 1, 0}));
}

TEST(Tokenizer, reads_opt_as_published) {
  // OPT's own vocabulary gives "I like you." -> [2,100,101,47,4]: these are its entries for that, and merges to them.
  Folder folder;
  json vocab = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3},
                {".", 4},   {"Ġyou", 47}, {"I", 100},  {"Ġlike", 101}};
  int next = 200;
  for (const char* token : {"Ġ", "l", "i", "k", "e", "y", "o", "u", "Ġl", "ik", "ike", "Ġy", "ou"}) {
    vocab[token] = next++;
  }
  folder.put("vocab.json", vocab);
  folder.put("merges.txt", std::string("#version: 0.2\nĠ l\ni k\nik e\r\nĠl ike\nĠ y\no u\nĠy ou\n"));
  folder.put("tokenizer_config.json", json::parse(R"({"add_bos_token": true, "tokenizer_class": "GPT2Tokenizer",
    "bos_token": {"__type": "AddedToken", "content": "</s>", "lstrip": false, "normalized": true, "rstrip": false,
                  "single_word": false}})"));
  folder.put("special_tokens_map.json", json{{"bos_token", "</s>"}, {"pad_token", "<pad>"}});
  const Tokenizer tokenizer = folder.load();
  ASSERT_EQ(tokenizer.bos(), 2);
  EXPECT_EQ(tokenizer.encode("I like you."), (Ids{100, 101, 47, 4}));
  EXPECT_EQ(tokenizer.encode("</s><pad>I"), (Ids{2, 1, 100}));
  EXPECT_EQ(tokenizer.decode(Ids{2, 100, 101, 47, 4}), "</s>I like you.");
}

TEST(Tokenizer, refuses_text_that_is_not_utf8_and_names_the_byte) {
  const Tokenizer tokenizer = Folder().put("tokenizer.json", small_tokenizer()).load();
  for (const char* tail : {"\xFF", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF5\x80\x80\x80"}) {
    expect_contains(file_error([&] { tokenizer.encode(std::string("ab\xC3\xA9") + tail); }), "not UTF-8 at byte 4");
  }
}

TEST(Tokenizer, keeps_a_nul_byte_as_text) {
  json value = small_tokenizer();
  value["model"]["vocab"][std::string(1, '\0')] = 7;
  EXPECT_EQ(Folder().put("tokenizer.json", value).load().encode(std::string("a\0b", 3)), (Ids{0, 7, 1}));
}

TEST(Tokenizer, digest_follows_the_content_and_not_its_layout) {
  const auto digest = [](const json& value, int indent) {
    return Folder().put("tokenizer.json", value.dump(indent)).load().digest();
  };
  json other = small_tokenizer();
  std::swap(other["model"]["merges"][0], other["model"]["merges"][1]);
  EXPECT_EQ(digest(small_tokenizer(), 2), digest(small_tokenizer(), -1));
  EXPECT_NE(digest(small_tokenizer(), 2), digest(other, 2));
}

TEST(Tokenizer, long_pieces_take_linear_time) {
  json value = small_tokenizer();
  value["pre_tokenizer"] = nullptr;
  std::string text;
  for (int i = 0; i < 300'000; ++i) {
    text += "abc";
  }
  EXPECT_EQ(Folder().put("tokenizer.json", value).load().encode(text), Ids(300'000, 5));
}

TEST(Tokenizer, a_pattern_that_backtracks_without_end_is_an_error) {
  json value = small_tokenizer();
  value["pre_tokenizer"]["pattern"] = {{"Regex", "(a|aa)+$"}};
  const Tokenizer tokenizer = Folder().put("tokenizer.json", value).load();
  EXPECT_EQ(tokenizer.encode("aa"), Ids{});  // a match, which is removed
  const std::string message = file_error([&] { tokenizer.encode(std::string(40, 'a') + "b"); });
  expect_all(message, {"pre_tokenizer.pattern", "(a|aa)+$", "match limit"});
}

TEST(Tokenizer, refuses_what_it_does_not_know_by_name) {
  expect_all(refusal_after([](json& t) {
               t["pre_tokenizer"] = {{"type", "Punctuation"}};
             }),
             {"tokenizer.json", "pre_tokenizer.type", "Punctuation", "ByteLevel, Split, Digits, Metaspace"});
  expect_all(refusal_after([](json& t) { t["normalizer"] = {{"type", "NFKC"}}; }), {"normalizer.type", "NFKC", "NFC"});
  expect_all(refusal_after([](json& t) {
               t["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Lowercase"}}}}};
             }),
             {"normalizer.normalizers[1].type", "Lowercase"});
  expect_all(refusal_after([](json& t) { t["decoder"] = {{"type", "WordPiece"}}; }), {"decoder.type", "WordPiece"});
  expect_all(refusal_after([](json& t) {
               t["post_processor"] = {{"type", "BertProcessing"}};
             }),
             {"post_processor.type", "BertProcessing", "TemplateProcessing"});
  expect_all(refusal_after([](json& t) { t["model"]["type"] = "Unigram"; }), {"model.type", "Unigram", "BPE"});
  expect_all(refusal_after([](json& t) { t["model"]["dropout"] = 0.1; }), {"model.dropout", "0.1"});
  expect_all(refusal_after([](json& t) { t["model"]["end_of_word_suffix"] = "</w>"; }),
             {"model.end_of_word_suffix", "</w>"});
  expect_all(refusal_after([](json& t) { t["model"]["byte_fall_back"] = true; }), {"model.byte_fall_back"});
  expect_all(refusal_after([](json& t) { t["pre_tokenizer"]["behavior"] = "isolated"; }),
             {"pre_tokenizer.behavior", "isolated", "Isolated"});
}

TEST(Tokenizer, refuses_patterns_that_mean_two_things) {
  for (const char* pattern : {"\\w+", "\\C", "a\\b", "[a&&b]", "[a[b]]", "(?m).", "a{2}+", "(a", ""}) {
    expect_contains(refusal_after([&](json& t) {
                      t["pre_tokenizer"]["pattern"] = {{"Regex", pattern}};
                    }),
                    "pre_tokenizer.pattern");
  }
}

TEST(Tokenizer, refuses_steps_that_grow_a_text_without_end) {
  const json doubled = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  const auto steps = [](const json& step, int count) {
    json list = json::array();
    for (int i = 0; i < count; ++i) {
      list.push_back(step);
    }
    return list;
  };
  // 3 letters may become 4096 + 3 * 16 = 4144: 10 doublings make 3072, 11 make 6144.
  json value = small_tokenizer();
  value["added_tokens"] = json::array();
  value["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps(doubled, 10)}};
  EXPECT_EQ(Folder().put("tokenizer.json", value).load().encode("aaa"), Ids(3072, 0));
  for (const int count : {11, 64}) {
    value["normalizer"]["normalizers"] = steps(doubled, count);
    const Tokenizer tokenizer = Folder().put("tokenizer.json", value).load();
    expect_all(file_error([&] { tokenizer.encode("aaa"); }), {"tokenizer.json", "\"normalizer\"", "4144"});
  }
  expect_all(refusal_after([&](json& t) {
               t["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps(doubled, 65)}};
             }),
             {"normalizer.normalizers", "at most 64 steps"});
  value = small_tokenizer();
  value["decoder"] = {{"type", "Sequence"}, {"decoders", steps(doubled, 64)}};
  expect_all(file_error([&] {
               Folder().put("tokenizer.json", value).load().decode(Ids{0, 0, 0});
             }),
             {"tokenizer.json", "\"decoder\"", "4144"});
  value["decoder"] = {{"type", "Replace"}, {"pattern", {{"Regex", ""}}}, {"content", "b"}};
  value["decoder"]["pattern"] = {{"Regex", "^|$"}};
  value["decoder"]["content"] = std::string(5000, 'b');
  expect_all(file_error([&] { Folder().put("tokenizer.json", value).load().decode(Ids{0}); }),
             {"decoder.pattern", "more than 4112 bytes"});
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  expect_all(refusal_after([&](json& t) {
               t["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps(byte_level, 2)}};
             }),
             {"pre_tokenizer.pretokenizers[1].type", "accepted is one"});
}

TEST(Tokenizer, refuses_added_tokens_that_are_no_words) {
  const auto added = [](std::size_t bytes, int count) {
    json list = json::array();
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      list.push_back(
          {{"id", 10 + i}, {"content", number + std::string(bytes - number.size(), '-')}, {"special", true}});
    }
    return refusal_after([&](json& t) { t["added_tokens"] = list; });
  };
  expect_all(added(513, 1), {"tokenizer.json", "(id 10)", "513 bytes; at most 512"});
  expect_all(added(512, 8193), {"tokenizer.json", "(id 8202)", "4194816 bytes, of which 4194304 are accepted"});
}

TEST(Tokenizer, refuses_hostile_models) {
  expect_all(refusal_after([](json& t) { t["model"]["merges"] = json::array(); }), {"model.merges", "at least one"});
  expect_all(refusal_after([](json& t) { t["model"].erase("merges"); }), {"model.merges"});
  expect_all(refusal_after([](json& t) {
               t["model"]["merges"][1] = {"a", "d"};
             }),
             {"model.merges[1]", "no token \"d\""});
  expect_all(refusal_after([](json& t) {
               t["model"]["merges"][1] = {"c", "a"};
             }),
             {"model.merges[1]", "no token \"ca\""});
  expect_all(refusal_after([](json& t) { t["model"]["merges"][2] = "a b c"; }), {"model.merges[2]", "a b c"});
  expect_all(refusal_after([](json& t) { t["model"]["merges"][2] = {"a", 1}; }), {"model.merges[2]"});
  expect_all(refusal_after([](json& t) { t["model"]["vocab"] = json::object(); }), {"vocabulary of 0 tokens"});
  expect_all(refusal_after([](json& t) { t["model"]["vocab"]["a"] = 1; }), {"model.vocab", "has this id too"});
  for (const json& id : {json(-1), json(1.5), json("0"), json(4294967296), json(1048576), json(nullptr)}) {
    expect_all(refusal_after([&](json& t) { t["model"]["vocab"]["a"] = id; }), {"model.vocab.a", id.dump()});
    expect_contains(refusal_after([&](json& t) { t["added_tokens"][0]["id"] = id; }), "added_tokens[0].id");
  }
}

TEST(Tokenizer, refuses_added_tokens_that_contradict) {
  expect_all(refusal_after([](json& t) { t["added_tokens"][0]["id"] = 3; }), {"<end>", "id of \"ab\""});
  expect_all(refusal_after([](json& t) { t["added_tokens"][0]["content"] = "ab"; }), {"\"ab\"", "id 3"});
  expect_all(refusal_after([](json& t) { t["added_tokens"][0]["content"] = ""; }), {"no text"});
  expect_all(refusal_after([](json& t) { t["added_tokens"].push_back(t["added_tokens"][0]); }), {"<end>", "twice"});
  expect_all(refusal_after([](json& t) { t["added_tokens"] = {"<end>"}; }), {"added_tokens[0]"});
}

TEST(Tokenizer, refuses_broken_files) {
  const std::string whole = small_tokenizer().dump();
  expect_contains(Folder().put("tokenizer.json", whole.substr(0, whole.size() / 2)).refusal(), "tokenizer.json");
  expect_contains(Folder().put("tokenizer.json", std::string("[1, 2]")).refusal(), "object");
  expect_contains(Folder().put("tokenizer.json", std::string()).refusal(), "empty");
  expect_contains(Folder().refusal(), "vocab.json and merges.txt");

  const json vocab = {{"a", 0}, {"b", 1}, {"ab", 2}};
  const auto merges_refusal = [&](const std::string& text) {
    return Folder().put("vocab.json", vocab).put("merges.txt", text).refusal();
  };
  expect_contains(Folder().put("vocab.json", vocab).refusal(), "merges.txt: no such file");
  expect_contains(merges_refusal("#version: 0.2\n"), "no merges");
  expect_all(merges_refusal("#version: 0.2\na b\nb a\n"), {"merges.txt: line 3", "no token \"ba\""});
  expect_all(merges_refusal("#version: 0.2\nab\n"), {"merges.txt: line 2", "one blank"});
  expect_contains(merges_refusal("a b\n\xFF\n"), "byte 4 is not UTF-8");
  expect_all(Folder()
                 .put("vocab.json", vocab)
                 .put("merges.txt", std::string("a b\n"))
                 .put("tokenizer_config.json", json{{"tokenizer_class", "Qwen2Tokenizer"}})
                 .refusal(),
             {"tokenizer_config.json", "Qwen2Tokenizer", "GPT2Tokenizer"});
  expect_all(Folder()
                 .put("vocab.json", vocab)
                 .put("merges.txt", std::string("a b\n"))
                 .put("tokenizer_config.json", json{{"bos_token", "<s>"}})
                 .refusal(),
             {"bos_token", "<s>", "not in the vocabulary"});
}

TEST(Tokenizer, refuses_a_leading_token_that_nothing_is) {
  expect_all(Folder()
                 .put("tokenizer.json", small_tokenizer())
                 .put("tokenizer_config.json", json{{"add_bos_token", true}, {"bos_token", "<begin>"}})
                 .refusal(),
             {"tokenizer_config.json", "add_bos_token", "<begin>"});
  const auto with_template = [](const json& ids) {
    json value = small_tokenizer();
    value["post_processor"] = {{"type", "TemplateProcessing"},
                               {"single", {{{"SpecialToken", {{"id", "<end>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                               {"special_tokens", {{"<end>", {{"ids", ids}}}}}};
    return Folder().put("tokenizer.json", value).refusal();
  };
  expect_contains(with_template({8}), "the id 8, which no token has");
  expect_contains(with_template({9, 9}), "at most one");
  expect_contains(with_template({"9"}), "special_tokens.<end>.ids");
}

}  // namespace distzo2
