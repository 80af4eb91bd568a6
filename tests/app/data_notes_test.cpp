// SPDX-License-Identifier: BSD-3-Clause
// What the commands note of data that a run can do with, but its user should know.
#include <gtest/gtest.h>

#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

TEST(DataNotes, name_what_is_odd_about_the_sets) {
  const TinyProject project;
  const auto notes = [&](const std::vector<std::string>& sets) {
    std::vector<std::string> words = train_words("deck.yaml", sets);
    words.front() = "validate";
    const ProgramResult result = project.run(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(notes({}).find("note "), std::string::npos);
  project.write("quoted.tsv", "sentence\tlabel\n\"a\"\t1\nb \"c\"\t0\n\"d, e\"\t1\n\"\t0\nf\t1\n");
  EXPECT_NE(notes({"data/test=quoted.tsv"})
                .find("quoted.tsv, 5 of 5 rows: 2 rows of the file have a cell in double quotes; in a TSV quotes are"),
            std::string::npos);
  project.write("blank.tsv", "sentence\tlabel\n\t1\nb\t0\n \t1\nd\t0\ne\t1\n");
  EXPECT_NE(notes({"data/test=blank.tsv"})
                .find("blank.tsv, 5 of 5 rows: 2 examples without text in a column that the task's template uses"),
            std::string::npos);
  project.write("blank.jsonl", "{\"sentence\": \"\", \"label\": 1}\n{\"sentence\": \"b\", \"label\": 0}\n");
  EXPECT_NE(notes({"data/test=blank.jsonl"}).find("blank.jsonl, 2 of 2 rows: 1 example without text in a column"),
            std::string::npos);
  EXPECT_NE(notes({"zo/batch=41"}).find("fewer than a batch of 41"), std::string::npos);
  project.write("one.tsv", "sentence\tlabel\na\t1\nb\t1\nc\t1\nd\t1\ne\t1\n");
  EXPECT_NE(notes({"data/train=one.tsv"}).find("every example has the label \"yes\""), std::string::npos);
  EXPECT_NE(notes({"data/test=one.tsv"}).find("one.tsv, 5 of 5 rows: every example has the label \"yes\", so that its"),
            std::string::npos);
  fs::copy_file(project.path("train.tsv"), project.path("copy.tsv"));
  for (const char* set : {"test", "dev"})  // also where a part of the training file is trained on
    for (const char* part : {"zo/seed=7", "data/train examples=20"})
      EXPECT_NE(notes({"data/" + std::string(set) + "=copy.tsv", part}).find("copy.tsv, 40 of 40 rows: the file is"),
                std::string::npos)
          << set << " " << part;
  const std::string train = text_of_file(project.path("train.tsv"));
  project.write("some.tsv", train.substr(0, train.find("row 3")));
  EXPECT_NE(notes({"data/test=some.tsv"}).find("every example is trained on"), std::string::npos);
  const std::string dev = text_of_file(project.path("dev.tsv")), rows = train.substr(train.find('\n') + 1);
  const auto first = [&](int count) {  // rows of the training file
    std::size_t end = 0;
    for (int i = 0; i < count; ++i) end = rows.find('\n', end) + 1;
    return rows.substr(0, end);
  };
  project.write("leak.tsv", dev + first(1));
  EXPECT_EQ(notes({"data/test=leak.tsv"}).find("trained on"), std::string::npos);  // 1 of 13 is below a tenth
  project.write("leak.tsv", dev + first(2));
  EXPECT_NE(notes({"data/test=leak.tsv"}).find("leak.tsv, 14 of 14 rows: 2 of 14 examples are trained on, so that"),
            std::string::npos);
  project.write("leak.tsv", dev + first(1) + first(1));  // each time that it stands there counts
  EXPECT_NE(notes({"data/test=leak.tsv"}).find("2 of 14 examples are trained on"), std::string::npos);
  // A row has "row ", a number, a blank, its letters, ": " and "yes": with 12 tokens only "row 0 a" is whole.
  EXPECT_NE(notes({"data/max length=12"}).find("train.tsv, 40 of 40 rows: 39 prompts shortened to 12 tokens"),
            std::string::npos);
  project.write("few.tsv", "sentence\tlabel\na\t1\nb\t0\nc\t1\nd\t0\nrow of letters\t1\n");
  EXPECT_NE(
      notes({"data/max length=12", "data/train=few.tsv"}).find("few.tsv, 5 of 5 rows: 1 prompt shortened to 12 tokens"),
      std::string::npos);
}

}  // namespace
}  // namespace distzo2
