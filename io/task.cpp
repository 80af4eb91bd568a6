// SPDX-License-Identifier: BSD-3-Clause
#include "io/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "io/fail.hpp"
#include "io/json_file.hpp"
#include "io/trimmed.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace {

constexpr std::size_t max_labels = 1000;
constexpr std::size_t max_fields = 256;
constexpr std::size_t max_parts = 1024;     // of a template
constexpr std::size_t max_transforms = 64;  // of a field

constexpr std::array<std::pair<std::string_view, Transform>, 6> transform_names{{
    {"strip", Transform::strip},
    {"lower case", Transform::lower_case},
    {"upper-case first letter", Transform::upper_first},
    {"lower-case first word", Transform::lower_first_word},
    {"drop full stop", Transform::drop_full_stop},
    {"add question mark", Transform::add_question_mark},
}};

void only_keys(const JsonObject& object, std::initializer_list<std::string_view> accepted) {
  for (const auto& [key, value] : object.raw().items()) {
    if (std::find(accepted.begin(), accepted.end(), key) == accepted.end()) {
      const std::string near = nearest_name(key, accepted);
      fail(fmt::format("{}: key \"{}\" is unknown; {}ccepted are: {}", object.file(), object.path_of(key),
                       near.empty() ? "a" : fmt::format("did you mean \"{}\"? A", near), fmt::join(accepted, ", ")));
    }
  }
}

std::string text_of(const JsonObject& object, const std::string& key) {
  std::string text = object.string(key);
  if (text.empty()) {
    object.refuse(key, "it may not be empty");
  }
  return text;
}

Transform transform_of(const JsonObject& field, const nlohmann::json& name) {
  for (const auto& [known, transform] : transform_names) {
    if (name.is_string() && name.get_ref<const std::string&>() == known) {
      return transform;
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [known, transform] : transform_names) {
    names.push_back(known);
  }
  field.refuse("transforms", fmt::format("accepted are: {}", fmt::join(names, ", ")));
}

TaskField read_field(const JsonObject& object, const std::string& name) {
  only_keys(object, {"column", "transforms", "map"});
  TaskField field;
  field.name = name;
  field.column = object.has("column") ? text_of(object, "column") : name;
  if (object.has("transforms")) {
    if (object.array("transforms").size() > max_transforms) {
      object.refuse("transforms", fmt::format("at most {} are accepted", max_transforms));
    }
    for (const auto& transform : object.array("transforms")) {
      field.transforms.push_back(transform_of(object, transform));
    }
  }
  if (object.has("map")) {
    const JsonObject map = object.object("map");
    for (const auto& [from, to] : map.raw().items()) {
      field.map.emplace(from, map.string(from));
    }
    if (field.map.empty()) {
      object.refuse("map", "at least one entry is needed");
    }
  }
  return field;
}

/// The field of this name; one that "fields" does not list is the column itself.
int field_index(Task& task, const std::string& name) {
  for (std::size_t i = 0; i < task.fields.size(); ++i) {
    if (task.fields[i].name == name) {
      return static_cast<int>(i);
    }
  }
  if (task.fields.size() == max_fields) {
    fail(task.path, fmt::format("more than {} fields; no more are accepted", max_fields));
  }
  TaskField field;
  field.name = field.column = name;
  task.fields.push_back(std::move(field));
  return static_cast<int>(task.fields.size()) - 1;
}

/// Splits "{sentence} It was {label}"; "{{" and "}}" stand for the braces themselves.
void read_template(Task& task, const JsonObject& object) {
  const std::string text = text_of(object, "template");
  std::string literal;
  bool labelled = false;
  const auto end_literal = [&] {
    if (!literal.empty()) {
      task.parts.push_back({std::exchange(literal, {}), -1});
    }
  };
  std::size_t i = 0;
  while (i < text.size()) {
    if (labelled) {
      object.refuse("template", "it must end with {label}");
    }
    if (task.parts.size() > max_parts) {
      object.refuse("template", fmt::format("at most {} pieces of text and fields are accepted", max_parts));
    }
    if (text.compare(i, 2, "{{") == 0 || text.compare(i, 2, "}}") == 0) {
      literal += text[i];
      i += 2;
    } else if (text[i] == '{') {
      const std::size_t close = text.find_first_of("{}", i + 1);
      if (close == std::string::npos || text[close] == '{' || close == i + 1) {
        object.refuse("template", "a { opens a field's name, as in {sentence}; {{ stands for the brace itself");
      }
      const std::string name = text.substr(i + 1, close - i - 1);
      end_literal();
      if (name == "label") {
        labelled = true;
      } else {
        task.parts.push_back({"", field_index(task, name)});
      }
      i = close + 1;
    } else if (text[i] == '}') {
      object.refuse("template", "a } closes no field; }} stands for the brace itself");
    } else {
      literal += text[i++];
    }
  }
  if (!labelled) {
    object.refuse("template", "it must end with {label}");
  }
  if (task.parts.empty()) {
    object.refuse("template", "something must stand before {label}");
  }
}

TaskLabel read_label(Task& task, const JsonObject& object, std::set<std::string>& seen) {
  only_keys(object, {"value", "word", "field"});
  TaskLabel label;
  const auto& value = object.value("value");
  for (const auto& v : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!v.is_string() || v.get_ref<const std::string&>().empty()) {
      object.refuse("value", "a text as it stands in the label column, or an array of them, was expected");
    }
    label.values.push_back(v.get<std::string>());
    if (!seen.insert(label.values.back()).second) {
      object.refuse("value", fmt::format("\"{}\" stands for another label already", label.values.back()));
    }
  }
  if (label.values.empty()) {
    object.refuse("value", "at least one text was expected");
  }
  if (object.has("word") == object.has("field")) {
    fail(fmt::format("{}: label \"{}\" needs either \"word\" or \"field\"", object.file(), label.values.front()));
  }
  if (object.has("word")) {
    label.word = text_of(object, "word");
    constexpr const char* blanks = " \t\n\r";
    const auto same = [&](const TaskLabel& l) { return trimmed(l.word, blanks) == trimmed(label.word, blanks); };
    if (std::ranges::any_of(task.labels, same)) {
      object.refuse("word", "another label has that word already, so that no answer could tell them apart");
    }
  } else {
    label.field = field_index(task, text_of(object, "field"));
  }
  return label;
}

void read_labels(Task& task, const JsonObject& object) {
  const auto& labels = object.array("labels");
  if (labels.size() < 2 || labels.size() > max_labels) {
    object.refuse("labels", fmt::format("2 to {} labels are accepted", max_labels));
  }
  std::set<std::string> values;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    task.labels.push_back(read_label(task, {labels[i], object.file(), fmt::format("labels[{}]", i)}, values));
  }
}

void check_fields_used(const Task& task, std::size_t listed) {
  for (std::size_t i = 0; i < listed; ++i) {
    const auto index = static_cast<int>(i);
    const bool used =
        std::any_of(task.parts.begin(), task.parts.end(), [&](const auto& p) { return p.field == index; }) ||
        std::any_of(task.labels.begin(), task.labels.end(), [&](const auto& l) { return l.field == index; });
    if (!used) {
      fail(fmt::format("{}: key \"fields.{}\": neither the template nor a label uses this field", task.path.string(),
                       task.fields[i].name));
    }
  }
}

}  // namespace

Task parse_task(std::string_view json, const std::filesystem::path& path) {
  const nlohmann::json value = parse_json(json, path.string());
  const JsonObject object(value, path.string());
  only_keys(object, {"name", "template", "fields", "labels", "label column", "metric", "objective"});
  Task task;
  task.path = path;
  task.name = text_of(object, "name");
  if (object.has("fields")) {
    const JsonObject fields = object.object("fields");
    if (fields.raw().size() > max_fields) {
      object.refuse("fields", fmt::format("at most {} are accepted", max_fields));
    }
    for (const auto& [name, field] : fields.raw().items()) {
      if (name == "label") {
        fields.refuse(name, "the template's {label} is the answer: give the field another name");
      }
      task.fields.push_back(read_field(fields.object(name), name));
    }
  }
  const std::size_t listed = task.fields.size();
  read_template(task, object);
  read_labels(task, object);
  check_fields_used(task, listed);
  task.label_column = object.has("label column") ? text_of(object, "label column") : "label";
  task.metric = object.string("metric");
  if (task.metric != "accuracy") {
    object.refuse("metric", "accepted is: accuracy");
  }
  const std::string objective = object.string("objective");
  if (objective == "classification") {
    task.objective = Objective::classification;
  } else if (objective == "language model") {
    task.objective = Objective::language_model;
  } else {
    object.refuse("objective", "accepted are: classification, language model");
  }
  return task;
}

Task read_task(const std::filesystem::path& path) {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  return parse_task(read_text_file(path, max_bytes), path);
}

}  // namespace distzo2
