// SPDX-License-Identifier: BSD-3-Clause
#include "io/deck.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/deck_files.hpp"

namespace distzo2 {
namespace {

/// A deck whose required keys are there, with more lines of `zo`.
std::string with_zo(const std::string& lines) {
  return "model: {folder: m}\ndata: {task: sst2}\nzo:\n" + lines;
}

class DeckTest : public ::testing::Test {
protected:
  Deck read(const std::string& text, const std::vector<std::string>& sets = {}) {
    return read_deck(folder_.write("deck.yaml", text), sets);
  }
  std::string error(const std::string& text, const std::vector<std::string>& sets = {}) {
    return error_of([&] { read(text, sets); }, folder_.path());
  }
  template <class T>
  T zo(const std::string& line, const std::string& key) {
    return read(with_zo("  " + line + "\n")).values.sublist("zo").get<T>(key);
  }
  DeckFolder folder_;
};

TEST_F(DeckTest, fills_in_defaults_and_keeps_types) {
  const Deck deck = read(with_zo("  steps: 7\n"));
  const auto& zo = deck.values.sublist("zo");
  EXPECT_EQ(zo.get<long long>("steps"), 7);
  EXPECT_EQ(zo.get<double>("epsilon"), 1e-3);
  EXPECT_EQ(zo.get<std::string>("kind"), "gaussian");
  EXPECT_EQ(zo.get<unsigned long long>("seed"), 0u);
  EXPECT_EQ(deck.values.sublist("checkpoint").get<double>("trajectory sync"), 1.0);
  EXPECT_EQ(deck.values.sublist("precision").get<bool>("reproducible"), true);
  EXPECT_EQ(deck.places.at("zo/steps"), (folder_.path() / "deck.yaml:4").string());
  EXPECT_FALSE(deck.places.contains("zo/seed"));
}

TEST_F(DeckTest, numbers_are_exact) {
  EXPECT_EQ(zo<unsigned long long>("seed: 1234567890123", "seed"), 1234567890123ULL);
  EXPECT_EQ(zo<unsigned long long>("seed: 18446744073709551615", "seed"), UINT64_MAX);
  EXPECT_EQ(zo<double>("epsilon: 1", "epsilon"), 1.0);
  EXPECT_EQ(zo<double>("learning rate: 4e-5", "learning rate"), 4e-5);
  EXPECT_EQ(zo<double>("weight decay: .5", "weight decay"), 0.5);
}

TEST_F(DeckTest, misspelt_keys_are_refused_with_the_nearest_name) {
  const std::string message = error(with_zo("  epsilonn: 1e-3\n"));
  EXPECT_TRUE(
      message.starts_with("deck.yaml:4: zo/epsilonn: unknown key; did you mean \"epsilon\"? accepted: objective, "
                          "steps, batch, seed, epsilon"))
      << message;
  expect_parts(error(with_zo("  learning_rate: 1\n")), "did you mean \"learning rate\"?");
  expect_parts(error(with_zo("  Steps: 1\n")), "deck.yaml:4: zo/Steps", "lower case: \"steps\"");
  expect_parts(error(with_zo("  momentum: 1\n")), "zo/momentum: unknown key; accepted:");
  expect_parts(error(with_zo("  storage: bf16\n")), "did you mean \"precision/storage\"?");
  expect_parts(error("modle: {folder: m}\n"), "deck.yaml:1: modle", "did you mean \"model\"?");
  expect_parts(error("steps: 5\n"), "deck.yaml:1: steps", "did you mean \"zo/steps\"?");
  expect_parts(error("deck: {zo: {steps: 1}}\n"), "deck.yaml:1: deck: unknown key; accepted: model, data, zo");
  expect_parts(error("budgets: {}\n"), "budgets: unknown key");
}

TEST_F(DeckTest, wrong_types_are_refused) {
  EXPECT_EQ(error(with_zo("  steps: \"100\"\n")),
            "deck.yaml:4: zo/steps: \"100\" is a text (in quotes); accepted: an integer from 1 to 4294967295, without "
            "quotes");
  expect_parts(error(with_zo("  steps: 1e3\n")), "zo/steps: 1e3 is no integer");
  expect_parts(error(with_zo("  steps: 10.0\n")), "10.0 is no integer");
  expect_parts(error(with_zo("  steps: 12abc\n")), "12abc is no integer");
  expect_parts(error(with_zo("  steps: 010\n")), "leading zeros");
  expect_parts(error(with_zo("  steps: 0x10\n")), "0x10 is no integer");
  expect_parts(error(with_zo("  steps: true\n")), "true is no integer");
  expect_parts(error(with_zo("  epsilon: small\n")), "small is no number");
  expect_parts(error(with_zo("  epsilon: \"1e-3\"\n")), "in quotes");
  expect_parts(error(with_zo("  epsilon: .nan\n")), "no number");
  expect_parts(error(with_zo("  epsilon: 1e-999\n")), "no number");
  expect_parts(error(with_zo("  steps:\n")), "zo/steps: has no value");
  expect_parts(error(with_zo("  steps: [1]\n")), "zo/steps: is a list");
  expect_parts(error(with_zo("  steps: {a: 1}\n")), "zo/steps: is a map");
  expect_parts(error("precision: {reproducible: yes}\n"), "yes is not accepted; accepted: true, false");
  expect_parts(error("precision: {reproducible: \"true\"}\n"), "in quotes");
  expect_parts(error("zo: [steps, 3]\n"), "deck.yaml:1: zo: is a list; a sublist of keys is meant");
  expect_parts(error("zo: 3\n"), "zo: is a single value");
}

TEST_F(DeckTest, values_out_of_range_are_refused) {
  expect_parts(error(with_zo("  steps: 0\n")), "deck.yaml:4: zo/steps: 0 is out of range", "from 1 to 4294967295");
  expect_parts(error(with_zo("  steps: 4294967296\n")), "out of range");
  expect_parts(error(with_zo("  steps: -5\n")), "-5 is out of range");
  expect_parts(error(with_zo("  seed: -1\n")), "-1 is out of range", "18446744073709551615");
  expect_parts(error(with_zo("  seed: 18446744073709551616\n")), "beyond 64 bits");
  expect_parts(error(with_zo("  steps: 99999999999999999999\n")), "99999999999999999999 is beyond 64 bits");
  expect_parts(error(with_zo("  epsilon: 0\n")), "0 is out of range");
  expect_parts(error(with_zo("  learning rate: -1e-6\n")), "out of range");
  expect_parts(error(with_zo("  kind: gausian\n")), "\"gausian\" is not accepted; did you mean \"gaussian\"?",
               "accepted: gaussian, rademacher");
  expect_parts(error("parallel: {threads: Auto}\n"), "did you mean \"auto\"?");
}

TEST_F(DeckTest, times_have_units) {
  const auto limit = [&](const std::string& text) {
    return read("model: {folder: m}\ndata: {task: sst2}\ncheckpoint: {time limit: " + text + "}\n")
        .values.sublist("checkpoint")
        .get<std::string>("time limit");
  };
  EXPECT_EQ(limit("11:30:00"), "11:30:00");
  EXPECT_EQ(limit("\"11:30:00\""), "11:30:00");
  EXPECT_EQ(limit("30 min"), "30 min");
  EXPECT_EQ(limit("none"), "none");
  expect_parts(error("checkpoint: {time limit: 3600}\n"), "checkpoint/time limit: 3600 has no unit", "11:30:00",
               "none");
  expect_parts(error("checkpoint: {time limit: 0 s}\n"), "out of range", "above 0 s");
  expect_parts(error("output: {log every: 0}\n"), "output/log every: 0 is not accepted", "10", "5 s");
}

TEST_F(DeckTest, memory_has_units) {
  const auto budget = [&](const std::string& text) {
    return read("model: {folder: m}\ndata: {task: sst2}\nmemory: {host budget: " + text + "}\n")
        .values.sublist("memory")
        .get<std::string>("host budget");
  };
  EXPECT_EQ(budget("6 GiB"), "6 GiB");
  EXPECT_EQ(budget("\"80 GB\""), "80 GB");
  EXPECT_EQ(budget("auto"), "auto");
  expect_parts(error("memory: {host budget: 6}\n"), "memory/host budget: 6 has no unit", "6 GiB", "or auto");
  expect_parts(error("memory: {host budget: 0 B}\n"), "0 B is out of range");
  expect_parts(error("memory: {host budget: much}\n"), "much is no amount of memory");
  expect_parts(error("memory: {buffers: 4}\n"), "memory/buffers", "auto, 2, 3");
}

TEST_F(DeckTest, required_keys_are_asked_for) {
  EXPECT_EQ(
      error("model: {folder: m}\n"),
      "deck.yaml: data/task: is required and missing; accepted: the name of a task, the path of its JSON file, or "
      "random tokens");
  expect_parts(error("model: {folder: m}\nzo:\n"), "data/task: is required and missing");
  expect_parts(error("data: {task: \"\"}\n"), "data/task: has no value");
}

TEST_F(DeckTest, paths_are_expanded_and_made_absolute) {
  setenv("DISTZO2_TEST_DATA", "/some/where", 1);
  unsetenv("DISTZO2_TEST_UNSET");
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  setenv("HOME", "/the/home", 1);
  const Deck deck = read(
      "model: {folder: sub/../models/m/}\ndata:\n  task: sst2\n  train: "
      "${DISTZO2_TEST_DATA}/x-${DISTZO2_TEST_DATA}.tsv\n"
      "  dev: ~/d\xC3\xA9v.tsv\n  test: \"\"\n",
      {"output/folder=out"});
  setenv("HOME", home.c_str(), 1);
  const auto& data = deck.values.sublist("data");
  EXPECT_EQ(deck.values.sublist("model").get<std::string>("folder"), (folder_.path() / "models/m").string());
  EXPECT_EQ(data.get<std::string>("train"), "/some/where/x-/some/where.tsv");
  EXPECT_EQ(data.get<std::string>("dev"), "/the/home/d\xC3\xA9v.tsv");
  EXPECT_EQ(data.get<std::string>("test"), "");
  EXPECT_EQ(data.get<std::string>("task"), "sst2");
  EXPECT_EQ(deck.values.sublist("output").get<std::string>("folder"),
            (std::filesystem::current_path() / "out").string());
  expect_parts(error("data:\n  train: ${DISTZO2_TEST_UNSET}/train.tsv\n"), "deck.yaml:2: data/train",
               "${DISTZO2_TEST_UNSET} is not set");
  expect_parts(error("data: {train: \"${OPEN\"}\n"), "data/train", "${");
  expect_parts(error("data: {train: ~other/x}\n"), "~other/x", "~/");
  setenv("DISTZO2_TEST_DATA", "${HOME}", 1);
  expect_parts(error("data: {train: \"${DISTZO2_TEST_DATA}\"}\n"), "expands to");
  EXPECT_EQ(
      read("model: {folder: /a}\ndata: {task: tasks/mine.json}\n").values.sublist("data").get<std::string>("task"),
      (folder_.path() / "tasks/mine.json").string());
}

TEST_F(DeckTest, set_overrides_by_the_same_rules) {
  const Deck deck = read(with_zo("  steps: 7\n"), {"zo/steps=8", "zo/learning rate=1e-6", "zo/steps=9"});
  EXPECT_EQ(deck.values.sublist("zo").get<long long>("steps"), 9);
  EXPECT_EQ(deck.values.sublist("zo").get<double>("learning rate"), 1e-6);
  expect_parts(error(with_zo(""), {"zo/stesp=8"}),
               "--set \"zo/stesp=8\": zo/stesp: unknown key; did you mean \"steps\"?");
  expect_parts(error(with_zo(""), {"zo/steps=\"8\""}), "--set \"zo/steps=\"8\"\": zo/steps", "in quotes");
  expect_parts(error(with_zo(""), {"zo/steps="}), "zo/steps: has no value");
  expect_parts(error(with_zo(""), {"zoo/steps=1"}), "--set \"zoo/steps=1\": zoo: unknown key; did you mean \"zo\"?");
}

TEST_F(DeckTest, xml_follows_the_same_rules) {
  const auto xml = [&](const std::string& zo) {
    return read_deck(
               folder_.write("deck.xml",
                             "<ParameterList>\n<ParameterList name=\"model\"><Parameter name=\"folder\" "
                             "type=\"string\" value=\"m\"/></ParameterList>\n<ParameterList name=\"data\"><Parameter "
                             "name=\"task\" type=\"string\" value=\"sst2\"/></ParameterList>\n<ParameterList "
                             "name=\"zo\">\n" +
                                 zo + "\n</ParameterList></ParameterList>"),
               {})
        .values.sublist("zo");
  };
  const auto zo =
      xml("<Parameter name=\"seed\" type=\"int\" value=\"1234567890123\"/>"
          "<Parameter name=\"epsilon\" type=\"int\" value=\"1\"/>"
          "<Parameter name=\"kind\" type=\"string\" value=\"rademacher\"/>");
  EXPECT_EQ(zo.get<unsigned long long>("seed"), 1234567890123ULL);
  EXPECT_EQ(zo.get<double>("epsilon"), 1.0);
  EXPECT_EQ(zo.get<std::string>("kind"), "rademacher");
  expect_parts(error_of([&] { xml("<Parameter name=\"steps\" type=\"int\" value=\"12abc\"/>"); }, folder_.path()),
               "deck.xml:5: zo/steps: 12abc is no integer");
  expect_parts(error_of([&] { xml("<Parameter name=\"steps\" type=\"string\" value=\"12\"/>"); }, folder_.path()),
               "in quotes");
}

TEST_F(DeckTest, resolved_deck_reads_back_to_the_same_values) {
  const Deck deck =
      read(with_zo("  learning rate: 0.1\n  seed: 18446744073709551615\n") +
               "output: {folder: \"a\\\"b\\\\c\\nd \xC3\xA9 #: x\"}\ncheckpoint: {trajectory sync: 250 ms}\n",
           {"data/train=t.tsv"});
  const std::string text = deck_yaml(deck.values);
  const DeckFolder other;  // what was relative is absolute now
  const Deck again = read_deck(other.write("deck.yaml", text), {});
  EXPECT_EQ(deck_yaml(again.values), text);
  EXPECT_EQ(again.values.sublist("output").get<std::string>("folder"),
            (folder_.path() / "a\"b\\c\nd \xC3\xA9 #: x").string());
  EXPECT_EQ(again.values.sublist("zo").get<double>("learning rate"), 0.1);
  EXPECT_EQ(again.values.sublist("zo").get<unsigned long long>("seed"), UINT64_MAX);
  EXPECT_EQ(again.values.sublist("checkpoint").get<double>("trajectory sync"), 0.25);
  EXPECT_EQ(text.find("  test:"), std::string::npos);
}

TEST(DeckReference, names_every_key_with_its_meaning) {
  const std::string text = deck_reference();
  for (const auto& section : valid_deck()) {
    expect_parts(text, "## `" + section.first + "`");
    for (const auto& item : valid_deck().sublist(section.first)) {
      expect_parts(text, "| `" + item.first + "` |");
      EXPECT_FALSE(item.second.docString().empty()) << item.first;
      EXPECT_EQ(deck_key(section.first + "/" + item.first).problem_of(item.second), "") << item.first;
    }
  }
}

TEST(DeckReference, starter_deck_is_a_deck_of_the_defaults) {
  const DeckFolder folder;
  const Deck starter = read_deck(folder.write("deck.yaml", starter_deck()), {});
  const Deck least =
      read_deck(folder.write("least.yaml", "model: {folder: path/to/the/folder}\ndata: {task: sst2}\n"), {});
  EXPECT_EQ(deck_yaml(starter.values), deck_yaml(least.values));
}

TEST(DeckKeyTest, refuses_entries_of_another_type_or_range) {
  Teuchos::ParameterList zo = valid_deck().sublist("zo");
  EXPECT_THROW(zo.set("steps", std::string("many")), std::exception);
  EXPECT_THROW(zo.set("steps", 7.0), std::exception);
  EXPECT_THROW(zo.set("steps", 0LL), std::exception);
  EXPECT_NO_THROW(zo.set("steps", 7LL));
  EXPECT_THROW(zo.set("kind", std::string("uniform")), std::exception);
}

}  // namespace
}  // namespace distzo2
