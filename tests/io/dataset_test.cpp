// SPDX-License-Identifier: BSD-3-Clause
#include "io/dataset.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

namespace distzo2 {
namespace {

class DatasetFile : public ::testing::Test {
protected:
  DatasetFile() { std::filesystem::create_directories(folder_); }
  ~DatasetFile() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  Dataset read(const std::string& name, const std::string& bytes) const { return read_dataset(write(name, bytes)); }

  /// The message without the folder.
  std::string refusal(const std::string& name, const std::string& bytes) const {
    try {
      read(name, bytes);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::file);
      std::string message = e.what();
      const std::string folder = folder_.string() + "/";
      for (std::size_t at = message.find(folder); at != std::string::npos; at = message.find(folder)) {
        message.erase(at, folder.size());
      }
      return message;
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("distzo2_dataset_test_" + std::to_string(::getpid()));
};

using Texts = std::vector<std::string>;

TEST_F(DatasetFile, takes_tsv_cells_exactly) {
  const Dataset data =
      read("a.tsv", "sentence\tlabel\nso-so \" it 's\" \t1\n\t0\nd\xC3\xA9j\xC3\xA0 \xE2\x9D\xA4\t1\n");
  EXPECT_EQ(data.columns, (Texts{"sentence", "label"}));
  EXPECT_EQ(data.cells, (Texts{"so-so \" it 's\" ", "1", "", "0", "d\xC3\xA9j\xC3\xA0 \xE2\x9D\xA4", "1"}));
  EXPECT_EQ(data.rows(), 3U);
  EXPECT_EQ(data.cell(2, 1), "1");
  EXPECT_EQ(data.find_column("label"), 1);
  EXPECT_EQ(data.find_column("Label"), -1);
  EXPECT_TRUE(data.where(2).ends_with("a.tsv, line 4"));
}

TEST_F(DatasetFile, takes_crlf_a_byte_order_mark_and_a_missing_last_line_feed) {
  const Dataset plain = read("a.tsv", "x\ty\n1\t2\n3\t4\n");
  const Dataset windows = read("b.tsv", "\xEF\xBB\xBFx\ty\r\n1\t2\r\n3\t4");
  EXPECT_EQ(windows.columns, plain.columns);
  EXPECT_EQ(windows.cells, plain.cells);
  EXPECT_NE(windows.digest, plain.digest);
  EXPECT_EQ(read("c.tsv", "x\ty\n1\t2\n3\t4\n\n\n").cells, plain.cells);
}

TEST_F(DatasetFile, refuses_bad_tsv_by_file_and_line) {
  EXPECT_EQ(refusal("a.tsv", "s\tl\na\t1\nb\n"), "a.tsv, line 3: 1 tab-separated column; the header has 2 (s, l)");
  EXPECT_EQ(refusal("a.tsv", "s\tl\na\tb\t1\n"), "a.tsv, line 2: 3 tab-separated columns; the header has 2 (s, l)");
  EXPECT_EQ(refusal("a.tsv", "s\tl\na\t1\n\nb\t0\n"), "a.tsv, line 3: an empty line between rows");
  EXPECT_EQ(refusal("a.tsv", "s\ts\na\t1\n"), "a.tsv, line 1: column \"s\" stands twice");
  EXPECT_EQ(refusal("a.tsv", "s\t\na\t1\n"), "a.tsv, line 1: a column has no name");
  EXPECT_EQ(refusal("a.tsv", "s\tl\na\t1\n\xFF\xFE\t1\n"), "a.tsv, line 3: not valid UTF-8; the file must be in UTF-8");
  EXPECT_EQ(refusal("a.tsv", "s\tl\n\xED\xA0\x80\t1\n"),  // a surrogate
            "a.tsv, line 2: not valid UTF-8; the file must be in UTF-8");
  EXPECT_EQ(refusal("a.tsv", ""), "a.tsv: no rows");
  EXPECT_EQ(refusal("a.tsv", "s\tl\n"), "a.tsv: no rows, only a header");
  EXPECT_EQ(refusal("a.tsv", "s\tl\ra\t1\rb\t0\r"),
            "a.tsv, line 1: lines end in a carriage return (CR) alone; accepted: a line feed (LF), or CR LF");
  EXPECT_NE(refusal("a.tsv", std::string(1024, '\t') + "\n").find("more than 1024 columns"), std::string::npos);
  EXPECT_NE(refusal("a.tsv", std::string(4097, 'c') + "\n").find("name has 4097 bytes; at most 4096"),
            std::string::npos);
}

TEST_F(DatasetFile, takes_jsonl_of_text_numbers_truth_and_objects) {
  const Dataset data =
      read("a.jsonl",
           "{\"text\": \"a\\nb \\u00e9\", \"label\": true, \"n\": 12345678901234567, \"o\": {\"p\": \"q\"}}\n"
           "\n"
           "{\"o\": {\"p\": \"r\"}, \"n\": -1.5, \"label\": false, \"text\": \"\"}\r\n");
  EXPECT_EQ(data.columns, (Texts{"label", "n", "o.p", "text"}));
  EXPECT_EQ(data.cells, (Texts{"true", "12345678901234567", "q", "a\nb \xC3\xA9", "false", "-1.5", "r", ""}));
  EXPECT_TRUE(data.where(1).ends_with("a.jsonl, line 3"));
}

TEST_F(DatasetFile, refuses_bad_jsonl_by_file_and_line) {
  EXPECT_EQ(refusal("a.jsonl", "{\"a\": 1}\n{\"b\": 1}\n"),
            "a.jsonl, line 2: keys (b) are not those of the first row (a)");
  EXPECT_EQ(refusal("a.jsonl", "{\"a\": 1}\n{\"a\": 1, \"b\": 1}\n"),
            "a.jsonl, line 2: keys (a, b) are not those of the first row (a)");
  EXPECT_EQ(refusal("a.jsonl", "{\"a\": [1]}\n"),
            "a.jsonl, line 1: key \"a\" is an array; text, a number, true, false or an object of these is accepted");
  EXPECT_NE(refusal("a.jsonl", "{\"a\": null}\n").find("key \"a\" is null"), std::string::npos);
  // A name that each of many columns would repeat.
  std::string many = "{\"" + std::string(4000, 'c') + "\": {\"a\": 0";
  for (int i = 0; i < 1024; ++i) many += ", \"" + std::to_string(i) + "\": 0";
  EXPECT_NE(refusal("a.jsonl", many + "}}\n").find("more than 1024 columns"), std::string::npos);
  EXPECT_NE(refusal("a.jsonl", "{\"" + std::string(4095, 'c') + "\": {\"a\": 0}}\n").find("more than 4096 bytes"),
            std::string::npos);
  EXPECT_EQ(refusal("a.jsonl", "[1]\n"), "a.jsonl, line 1: not an object {\"column\": value, ...}");
  EXPECT_EQ(refusal("a.jsonl", "{\"a.b\": 1, \"a\": {\"b\": 2}}\n"), "a.jsonl, line 1: column \"a.b\" stands twice");
  const std::string bad = refusal("a.jsonl", "{\"a\": 1}\n{\"a\": \n");
  EXPECT_NE(bad.find("a.jsonl: line 2, column "), std::string::npos) << bad;
  EXPECT_EQ(bad.find("line 1"), std::string::npos) << bad;
  EXPECT_NE(refusal("a.jsonl", "{\"a\": 1, \"a\": 2}\n").find("twice"), std::string::npos);
  EXPECT_NE(refusal("a.jsonl", "{\"a\": \"\xC3\"}\n").find("line 1: not valid UTF-8"), std::string::npos);
  EXPECT_EQ(refusal("a.jsonl", "\n\n"), "a.jsonl: no rows");
}

TEST_F(DatasetFile, refuses_other_names_and_missing_files) {
  EXPECT_EQ(refusal("a.csv", "a,b\n1,2\n"), "a.csv: the name of a data set ends in .tsv or .jsonl");
  EXPECT_THROW(read_dataset(folder_ / "none.tsv"), Error);
  EXPECT_THROW(read_dataset(folder_), Error);
}

}  // namespace
}  // namespace distzo2
