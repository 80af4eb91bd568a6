// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/precision.hpp"
#include "io/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// What is done to a column's text before it enters a template, in the order listed.
enum class Transform : std::uint8_t {
  strip,              // blanks (ASCII) at both ends removed
  lower_case,         // Unicode, no locale
  upper_first,        // the first letter in upper case
  lower_first_word,   // the first word in lower case, but for "I"
  drop_full_stop,     // one '.' at the end removed
  add_question_mark,  // '?' added where the text does not end with one
};

/// A template's field: a column, changed by transforms, then looked up in `map` where that is not empty.
struct TaskField {
  std::string name;
  std::string column;
  std::vector<Transform> transforms;
  std::map<std::string, std::string> map;
};

/// One answer: the values of the label column that mean it, and its text: a word, or (COPA) a field of the row.
struct TaskLabel {
  std::vector<std::string> values;
  std::string word;
  int field = -1;  // index into Task::fields, or -1: `word`
};

/// A piece of the template: literal text, or a field.
struct TemplatePart {
  std::string text;
  int field = -1;
};

/// A task file. The prompt is `parts` in order; the label's text stands at the end of the template.
struct Task {
  std::filesystem::path path;
  std::string name;
  std::vector<TemplatePart> parts;
  std::vector<TaskField> fields;
  std::vector<TaskLabel> labels;
  std::string label_column;
  std::string metric;  // "accuracy"
  Objective objective = Objective::classification;
};

/// Reads a task from its JSON file (docs in inputs/tasks/README.md). Throws Error (file) naming file, key and what
/// would be accepted.
Task read_task(const std::filesystem::path& path);
Task parse_task(std::string_view json, const std::filesystem::path& path);

/// A row as the task words it: the text before the label and the text of every answer.
struct TaskText {
  std::string prompt;  // exactly the template up to {label}
  std::vector<std::string> answers;
  int label = 0;
  bool blank = false;  // a field of the template or of an answer has no text
};

/// A task joined to the columns of a data set.
class TaskReader {
public:
  /// Throws Error (file) naming the field or label column that the data lack and the columns there are.
  TaskReader(const Task& task, const Dataset& data);
  /// Throws Error (file) with line, value and accepted values for an unknown label or a value that no map entry has.
  TaskText text(std::uint32_t row) const;

private:
  std::string field_text(int field, std::uint32_t row) const;
  const Task& task_;
  const Dataset& data_;
  std::vector<std::size_t> columns_;  // of every field
  std::size_t label_column_ = 0;
};

}  // namespace distzo2
