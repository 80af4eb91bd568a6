// SPDX-License-Identifier: BSD-3-Clause
#include "io/task.hpp"

#include "core/error.hpp"
#include "test_paths.hpp"

#include <gtest/gtest.h>
#include <string>

namespace distzo2 {
namespace {

using Texts = std::vector<std::string>;

Task committed(const std::string& name) {
  return read_task(test_paths::sources / "inputs/tasks" / (name + ".json"));
}

Dataset one_row(Texts columns, Texts cells) {
  Dataset data;
  data.path = "data.tsv";
  data.columns = std::move(columns);
  data.cells = std::move(cells);
  data.lines = {2};
  return data;
}

TaskText text_of(const Task& task, const Texts& columns, const Texts& cells) {
  const Dataset data = one_row(columns, cells);
  return TaskReader(task, data).text(0);
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::file);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Task, words_sst2_and_strips_its_trailing_blanks) {
  for (const char* name : {"sst2", "reviews"}) {
    const Task task = committed(name);
    EXPECT_EQ(task.objective, Objective::classification);
    const TaskText text = text_of(task, {"label", "sentence"}, {"1", "quirkily appealing "});
    EXPECT_EQ(text.prompt, "quirkily appealing It was ");
    EXPECT_EQ(text.answers, (Texts{"terrible", "great"}));
    EXPECT_EQ(text.label, 1);
  }
}

TEST(Task, words_rte_and_cb) {
  const Texts columns{"premise", "hypothesis", "label"};
  TaskText text = text_of(committed("rte"), columns, {"Cats sleep.", "Cats rest.", "not_entailment"});
  EXPECT_EQ(text.prompt, "Cats sleep.\nDoes this mean that \"Cats rest.\" is true? Yes or No?\n");
  EXPECT_EQ(text.answers, (Texts{"Yes", "No"}));
  EXPECT_EQ(text.label, 1);
  EXPECT_EQ(text_of(committed("rte"), columns, {"a", "b", "0"}).label, 0);
  text = text_of(committed("cb"), columns, {"A: Do they?", "they do", "2"});
  EXPECT_EQ(text.prompt, "Suppose A: Do they? Can we infer that \"they do\"? Yes, No, or Maybe?\n");
  EXPECT_EQ(text.answers[static_cast<std::size_t>(text.label)], "Maybe");
  EXPECT_EQ(text_of(committed("cb"), columns, {"a", "b", "contradiction"}).label, 1);
}

TEST(Task, words_boolq_wsc_wic_and_multirc) {
  TaskText text = text_of(committed("boolq"), {"question", "passage", "label"}, {"is it so", "It is.", "true"});
  EXPECT_EQ(text.prompt, "It is. Is it so?\n");
  EXPECT_EQ(text.answers, (Texts{"Yes", "No"}));
  EXPECT_EQ(text.label, 0);
  EXPECT_EQ(text_of(committed("boolq"), {"question", "passage", "label"}, {"\xC3\xA9tat?", "P", "0"}).prompt,
            "P \xC3\x89tat?\n");
  text = text_of(committed("wsc"), {"text", "span1_text", "span2_text", "label"},
                 {"Ann saw Eve. She left.", "Ann", "She", "1"});
  EXPECT_EQ(text.prompt,
            "Ann saw Eve. She left.\nIn the previous sentence, does the pronoun \"she\" refer to Ann? Yes or No?\n");
  EXPECT_EQ(text.answers[static_cast<std::size_t>(text.label)], "Yes");
  text = text_of(committed("wic"), {"word", "sentence1", "sentence2", "label"},
                 {"bank", "A bank.", "Two banks.", "false"});
  EXPECT_EQ(text.prompt,
            "Does the word \"bank\" have the same meaning in these two sentences? Yes, No?\nA bank.\nTwo banks.\n");
  EXPECT_EQ(text.answers[static_cast<std::size_t>(text.label)], "No");
  text = text_of(committed("multirc"), {"paragraph", "question", "answer", "label"}, {"P.", "Why?", "So", "1"});
  EXPECT_EQ(text.prompt, "P.\nQuestion: Why?\nI found this answer \"So\". Is that correct? Yes or No?\n");
  EXPECT_EQ(text.answers, (Texts{"No", "Yes"}));
  EXPECT_EQ(text.label, 1);
}

TEST(Task, words_copa_with_choices_from_the_row) {
  const Task task = committed("copa");
  EXPECT_EQ(task.objective, Objective::language_model);
  const Texts columns{"premise", "choice1", "choice2", "question", "label"};
  TaskText text = text_of(task, columns, {"My body cast a shadow.", "The sun was rising.", "I slept.", "cause", "0"});
  EXPECT_EQ(text.prompt, "My body cast a shadow because ");
  EXPECT_EQ(text.answers, (Texts{"the sun was rising.", "I slept."}));
  EXPECT_EQ(text.label, 0);
  EXPECT_EQ(text_of(task, columns, {"It rained.", "A", "B", "effect", "1"}).prompt, "It rained so ");
  EXPECT_EQ(refusal([&] {
              text_of(task, columns, {"It rained.", "A", "B", "why", "1"});
            }),
            "data.tsv, line 2: column \"question\" is \"why\"; task \"copa\" accepts \"cause\", \"effect\"");
}

std::string task_json(const std::string& text_template, const std::string& more = "") {
  return R"({"name": "t", "metric": "accuracy", "objective": "classification", "template": ")" + text_template +
         R"(", "labels": [{"value": "0", "word": "no"}, {"value": "1", "word": "yes"}])" + more + "}";
}

Task parsed(const std::string& text) {
  return parse_task(text, "t.json");
}

TEST(Task, takes_letters_line_feeds_and_braces_exactly) {
  const Task task = parsed(task_json("\xC2\xAB{s}\xC2\xBB {{\\u00e9}}\\n\\t\xE2\x9D\xA4 {label}"));
  EXPECT_EQ(text_of(task, {"s", "label"}, {" a ", "0"}).prompt, "\xC2\xAB a \xC2\xBB {\xC3\xA9}\n\t\xE2\x9D\xA4 ");
}

TEST(Task, changes_case_beyond_ascii) {
  const Task task = parsed(task_json("{a} {label}", R"(, "fields": {"a": {"transforms": ["lower case"]}})"));
  EXPECT_EQ(text_of(task, {"a", "label"}, {"\xC3\x89T\xC3\x89 \xD0\x94", "0"}).prompt, "\xC3\xA9t\xC3\xA9 \xD0\xB4 ");
}

TEST(Task, refuses_templates_by_file_and_key) {
  for (const char* bad : {"{s}", "{s} {label} end", "{label} {s}"}) {
    EXPECT_NE(refusal([&] { parsed(task_json(bad)); }).find("it must end with {label}"), std::string::npos) << bad;
  }
  EXPECT_NE(refusal([] { parsed(task_json("{label}")); }).find("something must stand before {label}"),
            std::string::npos);
  for (const char* bad : {"{s {label}", "{} {label}", "{s", "a { b"}) {
    EXPECT_NE(refusal([&] { parsed(task_json(bad)); }).find("a { opens a field's name"), std::string::npos) << bad;
  }
  const std::string message = refusal([] { parsed(task_json("s} {label}")); });
  EXPECT_NE(message.find("t.json: key \"template\""), std::string::npos) << message;
  EXPECT_NE(message.find("a } closes no field"), std::string::npos) << message;
}

TEST(Task, refuses_unknown_keys_and_values_with_what_is_accepted) {
  EXPECT_EQ(
      refusal([] { parsed(task_json("{s} {label}", R"(, "lable column": "l")")); }),
      "t.json: key \"lable column\" is unknown; did you mean \"label column\"? Accepted are: name, template, fields, "
      "labels, label column, metric, objective");
  const std::string transform =
      refusal([] { parsed(task_json("{s} {label}", R"(, "fields": {"s": {"transforms": ["stripp"]}})")); });
  EXPECT_NE(transform.find("\"fields.s.transforms\""), std::string::npos) << transform;
  EXPECT_NE(transform.find("accepted are: strip, lower case"), std::string::npos) << transform;
  EXPECT_NE(refusal([] {
              parsed(task_json("{s} {label}", R"(, "fields": {"z": {}})"));
            }).find("\"fields.z\": neither the template nor a label uses this field"),
            std::string::npos);
  EXPECT_NE(refusal([] { parsed(task_json("{s} {label}", R"(, "fields": {"label": {}})")); }).find("another name"),
            std::string::npos);
  EXPECT_NE(refusal([] { parsed(task_json("{s} {label}", R"(, "name": "u")")); }).find("twice"), std::string::npos);
  EXPECT_NE(refusal([] {
              parsed(R"({"name": "t", "template": "{s} {label}", "labels": [{"value": "0", "word": "a"}]})");
            }).find("2 to 1000 labels"),
            std::string::npos);
  const std::string base = task_json("{s} {label}");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = base;
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { parsed(text); });
  };
  EXPECT_NE(with("accuracy", "f1").find("accepted is: accuracy"), std::string::npos);
  EXPECT_NE(with("classification", "ranking").find("classification, language model"), std::string::npos);
  EXPECT_NE(with(R"("value": "1")", R"("value": "0")").find("stands for another label already"), std::string::npos);
  EXPECT_NE(with(R"("value": "1")", R"("value": 1)").find("labels[1].value"), std::string::npos);
  EXPECT_NE(with(R"("word": "yes")", R"("word": " no")").find("labels[1].word"), std::string::npos);
  EXPECT_NE(with(R"("word": "yes")", R"("words": "yes")").find("labels[1].words"), std::string::npos);
  EXPECT_NE(with(R"(, "word": "yes")", "").find("either \"word\" or \"field\""), std::string::npos);
  EXPECT_NE(with(R"("word": "yes")", R"("word": "")").find("may not be empty"), std::string::npos);
}

TEST(Task, refuses_more_fields_pieces_and_transforms_than_a_task_has) {
  std::string fields, pieces;
  for (int i = 0; i < 256; ++i) fields += "{f" + std::to_string(i) + "}";
  for (int i = 0; i < 512; ++i) pieces += "{s} ";
  EXPECT_EQ(parsed(task_json(fields + "{label}")).fields.size(), 256U);
  EXPECT_EQ(parsed(task_json(pieces + "{label}")).parts.size(), 1024U);
  EXPECT_NE(refusal([&] { parsed(task_json(fields + "{g}{label}")); }).find("more than 256 fields"), std::string::npos);
  EXPECT_NE(refusal([&] { parsed(task_json(pieces + "{s} {label}")); }).find("at most 1024 pieces"), std::string::npos);
  std::string transforms = "\"strip\"";
  for (int i = 0; i < 64; ++i) transforms += ", \"strip\"";
  EXPECT_NE(refusal([&] {
              parsed(task_json("{s} {label}", R"(, "fields": {"s": {"transforms": [)" + transforms + "]}}"));
            }).find("\"fields.s.transforms\""),
            std::string::npos);
}

TEST(Task, tells_of_a_row_whose_field_has_no_text) {
  EXPECT_TRUE(text_of(committed("sst2"), {"sentence", "label"}, {" \t", "1"}).blank);
  EXPECT_FALSE(text_of(committed("sst2"), {"sentence", "label"}, {"a", "1"}).blank);
  const Texts columns{"premise", "hypothesis", "label"};
  EXPECT_TRUE(text_of(committed("rte"), columns, {"Cats sleep.", "", "0"}).blank);
  EXPECT_FALSE(text_of(committed("rte"), columns, {"Cats sleep.", "They do.", "0"}).blank);
}

TEST(Task, names_columns_that_the_data_lack_and_those_there_are) {
  const Task task = committed("sst2");
  const std::string field = refusal([&] { text_of(task, {"text", "label"}, {"a", "1"}); });
  EXPECT_NE(field.find("data.tsv: no column \"sentence\", which field {sentence} of task \"sst2\""), std::string::npos);
  EXPECT_NE(field.find("the columns are \"text\", \"label\""), std::string::npos) << field;
  const std::string label = refusal([&] { text_of(task, {"sentence", "y"}, {"a", "1"}); });
  EXPECT_NE(label.find("no column \"label\", which the label of task \"sst2\""), std::string::npos) << label;
}

TEST(Task, names_line_value_and_accepted_values_of_an_unknown_label) {
  EXPECT_EQ(refusal([] {
              text_of(committed("sst2"), {"sentence", "label"}, {"a", "-1"});
            }),
            "data.tsv, line 2: label \"-1\" in column \"label\"; task \"sst2\" accepts \"0\", \"1\"");
}

}  // namespace
}  // namespace distzo2
