// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "io/fail.hpp"
#include "io/task.hpp"
#include "io/trimmed.hpp"

namespace distzo2 {

namespace {

constexpr std::string_view blanks = " \t\r\n\f\v";

std::string changed(std::string_view text, bool upper) {
  icu::UnicodeString unicode =
      icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
  if (upper) {
    unicode.toUpper(icu::Locale::getRoot());
  } else {
    unicode.toLower(icu::Locale::getRoot());
  }
  std::string result;
  unicode.toUTF8String(result);
  return result;
}

/// Bytes of the first character.
std::size_t first_size(std::string_view text) {
  std::size_t n = text.empty() ? 0 : 1;
  while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) {
    ++n;
  }
  return n;
}

std::string transformed(std::string text, Transform transform) {
  switch (transform) {
    case Transform::strip:
      return std::string(trimmed(text, blanks));
    case Transform::lower_case:
      return changed(text, false);
    case Transform::upper_first: {
      const std::size_t n = first_size(text);
      return changed(text.substr(0, n), true) + text.substr(n);
    }
    case Transform::lower_first_word: {
      const std::size_t n = std::min(text.find(' '), text.size());
      const std::string word = text.substr(0, n);
      return word == "I" ? text : changed(word, false) + text.substr(n);
    }
    case Transform::drop_full_stop:
      return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
    case Transform::add_question_mark:
      return text.ends_with('?') ? text : text + '?';
  }
  return text;
}

std::string quoted(const std::vector<std::string>& names) {
  return fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

}  // namespace

TaskReader::TaskReader(const Task& task, const Dataset& data) : task_(task), data_(data) {
  const auto column = [&](const std::string& name, const std::string& wanted_by) {
    const int found = data.find_column(name);
    if (found < 0) {
      fail(fmt::format("{}: no column \"{}\", which {} of task \"{}\" ({}) needs; the columns are {}",
                       data.path.string(), name, wanted_by, task.name, task.path.string(), quoted(data.columns)));
    }
    return static_cast<std::size_t>(found);
  };
  for (const TaskField& field : task.fields) {
    columns_.push_back(column(field.column, fmt::format("field {{{}}}", field.name)));
  }
  label_column_ = column(task.label_column, "the label");
}

std::string TaskReader::field_text(int field, std::uint32_t row) const {
  const auto index = static_cast<std::size_t>(field);
  const TaskField& f = task_.fields[index];
  std::string text = data_.cell(row, columns_[index]);
  for (const Transform transform : f.transforms) {
    text = transformed(std::move(text), transform);
  }
  if (f.map.empty()) {
    return text;
  }
  const auto it = f.map.find(text);
  if (it == f.map.end()) {
    std::vector<std::string> accepted;
    for (const auto& [from, to] : f.map) {
      accepted.push_back(from);
    }
    fail(fmt::format("{}: column \"{}\" is \"{}\"; task \"{}\" accepts {}", data_.where(row), f.column, text,
                     task_.name, quoted(accepted)));
  }
  return it->second;
}

TaskText TaskReader::text(std::uint32_t row) const {
  TaskText result;
  const auto worded = [&](int field) {
    std::string text = field_text(field, row);
    result.blank = result.blank || trimmed(text, blanks).empty();
    return text;
  };
  for (const TemplatePart& part : task_.parts) {
    result.prompt += part.field < 0 ? part.text : worded(part.field);
  }
  result.label = -1;
  const std::string_view value = trimmed(data_.cell(row, label_column_), blanks);
  std::vector<std::string> accepted;
  for (std::size_t i = 0; i < task_.labels.size(); ++i) {
    const TaskLabel& label = task_.labels[i];
    result.answers.push_back(label.field < 0 ? label.word : worded(label.field));
    accepted.insert(accepted.end(), label.values.begin(), label.values.end());
    if (std::find(label.values.begin(), label.values.end(), value) != label.values.end()) {
      result.label = static_cast<int>(i);
    }
  }
  if (result.label < 0) {
    fail(fmt::format("{}: label \"{}\" in column \"{}\"; task \"{}\" accepts {}", data_.where(row), value,
                     task_.label_column, task_.name, quoted(accepted)));
  }
  return result;
}

}  // namespace distzo2
