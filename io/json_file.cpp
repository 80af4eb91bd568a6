// SPDX-License-Identifier: BSD-3-Clause
#include "io/json_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "io/fail.hpp"
#include "io/regular_file.hpp"

namespace distzo2 {

namespace {

using nlohmann::json;

/// "line 3, column 14" of the byte before `end`; `line` is that of the first byte.
std::string place(std::string_view text, std::size_t end, std::size_t line) {
  std::size_t column = 1;
  for (std::size_t i = 0; i + 1 < std::min(end, text.size()); ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

/// Reads a text and counts what was read, which is the only place where the parser's position can be seen.
struct CountingIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  std::size_t* read = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    ++at;
    ++*read;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
};

/// Builds the value, and refuses depth and duplicate keys as soon as they are met.
class Builder final : public nlohmann::json_sax<json> {
public:
  Builder(std::string_view text, const std::string& name, const JsonLimits& limits, const std::size_t& read)
      : text_(text), name_(name), limits_(limits), read_(read) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool v) override { return add(v) != nullptr; }
  bool number_integer(std::int64_t v) override { return add(v) != nullptr; }
  bool number_unsigned(std::uint64_t v) override { return add(v) != nullptr; }
  bool number_float(double v, const std::string& /*text*/) override { return add(v) != nullptr; }
  bool string(std::string& v) override { return add(std::move(v)) != nullptr; }
  bool binary(binary_t& /*v*/) override { return false; }
  bool start_object(std::size_t /*n*/) override { return open(json::object()); }
  bool start_array(std::size_t /*n*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& k) override {
    if (open_.back()->contains(k)) {
      fail(fmt::format("{}: {}: key \"{}\" stands twice in one object; keep one of them", name_,
                       place(text_, read_, limits_.first_line), shown(k)));
    }
    slot_ = &(*open_.back())[k];
    return true;
  }
  bool parse_error(std::size_t position, const std::string& last_token, const json::exception& e) override {
    std::string what = e.what();  // "[json.exception.NAME] parse error at line L, column C: DETAIL"
    if (const std::size_t tag = what.find("] "); what.starts_with("[json.exception") && tag != std::string::npos) {
      what.erase(0, tag + 2);
    }
    if (const std::size_t detail = what.find(": "); what.starts_with("parse error") && detail != std::string::npos) {
      what.erase(0, detail + 2);
    }
    fail(fmt::format("{}: {}: not valid JSON near \"{}\": {}", name_, place(text_, position, limits_.first_line),
                     shown(last_token), shown(what)));
  }

private:
  json* add(json v) {
    if (open_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(v));
      return &open_.back()->back();
    }
    *slot_ = std::move(v);
    return slot_;
  }
  bool open(json v) {
    if (std::cmp_greater_equal(open_.size(), limits_.max_depth)) {
      fail(fmt::format("{}: {}: arrays and objects nested more than {} deep; that is the limit", name_,
                       place(text_, read_, limits_.first_line), limits_.max_depth));
    }
    open_.push_back(add(std::move(v)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  const JsonLimits& limits_;
  const std::size_t& read_;
  json root_;
  std::vector<json*> open_;  // stable: a container only grows while it is the innermost open one
  json* slot_ = nullptr;     // where the value of the key just read goes
};

}  // namespace

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) {
    text = text.substr(0, 57) + "...";
  }
  return text;
}

std::string shown(const std::string& name) {
  return name.size() > 200 ? name.substr(0, 197) + "..." : name;
}

std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes) {
  expect_regular_file(path);
  std::error_code ec;
  const std::uintmax_t size = std::filesystem::file_size(path, ec);
  if (ec) {
    fail(fmt::format("{}: cannot be read: {}", path.string(), ec.message()));
  }
  if (size > max_bytes) {
    fail(fmt::format("{}: {} bytes; at most {} are accepted", path.string(), size, max_bytes));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    fail(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.gcount() != static_cast<std::streamsize>(text.size())) {
    fail(fmt::format("{}: cannot be read whole: {} of {} bytes came", path.string(), in.gcount(), text.size()));
  }
  return text;
}

std::string json_text(const nlohmann::ordered_json& value, bool one_line) {
  return value.dump(one_line ? -1 : 2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    fail(fmt::format("{}: {} bytes of JSON; at most {} are accepted", name, text.size(), limits.max_bytes));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    fail(fmt::format("{}: empty; a JSON value was expected", name));
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(fmt::format("{}: {}: not valid JSON: a zero byte", name,
                     place(text, nul + 1, limits.first_line)));  // the parser would stop there
  }
  std::size_t read = 0;
  Builder builder(text, name, limits, read);
  const CountingIterator begin{text.data(), &read};
  const CountingIterator end{text.data() + text.size(), &read};
  if (!json::sax_parse(begin, end, &builder)) {
    fail(fmt::format("{}: {}: not valid JSON", name, place(text, read, limits.first_line)));
  }
  return builder.take();
}

json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_text_file(path, limits.max_bytes), path.string(), limits);
}

JsonObject::JsonObject(const json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) {
    fail(fmt::format("{}: {} is {}; an object {{...}} was expected", file_,
                     path_.empty() ? "the whole file" : fmt::format("key \"{}\"", shown(path_)), shown(value)));
  }
}

bool JsonObject::present(const std::string& key) const {
  return value_->contains(key);
}

bool JsonObject::has(const std::string& key) const {
  const auto it = value_->find(key);
  return it != value_->end() && !it->is_null();
}

std::string JsonObject::path_of(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void JsonObject::refuse(const std::string& key, const std::string& problem) const {
  const auto it = value_->find(key);
  if (it == value_->end()) {
    fail(fmt::format("{}: key \"{}\" is missing; {}", file_, shown(path_of(key)), problem));
  }
  fail(fmt::format("{}: key \"{}\" is {}; {}", file_, shown(path_of(key)), shown(*it), problem));
}

const json& JsonObject::value(const std::string& key) const {
  if (!present(key)) {
    refuse(key, "it is required");
  }
  return (*value_)[key];
}

std::int64_t JsonObject::integer(const std::string& key, std::int64_t min, std::int64_t max) const {
  const std::string wanted = min == std::numeric_limits<std::int64_t>::min() ? std::string("an integer was expected")
                             : max == std::numeric_limits<std::int64_t>::max()
                                 ? fmt::format("an integer of at least {} was expected", min)
                                 : fmt::format("an integer from {} to {} was expected", min, max);
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_number_integer()) {
    refuse(key, wanted);
  }
  if (it->is_number_unsigned() && it->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    refuse(key, wanted);
  }
  const auto v = it->get<std::int64_t>();
  if (v < min || v > max) {
    refuse(key, wanted);
  }
  return v;
}

double JsonObject::number(const std::string& key) const {
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_number() || !std::isfinite(it->get<double>())) {
    refuse(key, "a number was expected");
  }
  return it->get<double>();
}

bool JsonObject::boolean(const std::string& key) const {
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_boolean()) {
    refuse(key, "true or false was expected");
  }
  return it->get<bool>();
}

std::string JsonObject::string(const std::string& key) const {
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_string()) {
    refuse(key, "a text was expected");
  }
  return it->get<std::string>();
}

JsonObject JsonObject::object(const std::string& key) const {
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_object()) {
    refuse(key, "an object {...} was expected");
  }
  return {*it, file_, path_of(key)};
}

const json& JsonObject::array(const std::string& key) const {
  const auto it = value_->find(key);
  if (it == value_->end() || !it->is_array()) {
    refuse(key, "an array [...] was expected");
  }
  return *it;
}

std::int64_t JsonObject::integer_or(const std::string& key, std::int64_t absent, std::int64_t min,
                                    std::int64_t max) const {
  return has(key) ? integer(key, min, max) : absent;
}

double JsonObject::number_or(const std::string& key, double absent) const {
  return has(key) ? number(key) : absent;
}

bool JsonObject::boolean_or(const std::string& key, bool absent) const {
  return has(key) ? boolean(key) : absent;
}

std::string JsonObject::string_or(const std::string& key, const std::string& absent) const {
  return has(key) ? string(key) : absent;
}

}  // namespace distzo2
