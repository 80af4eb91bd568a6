// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace distzo2 {

/// What a JSON text may cost before anything of it is believed.
struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;  // values take some twenty times that
  int max_depth = 64;                             // arrays and objects within each other
  std::size_t first_line = 1;                     // the number of the text's first line, in messages
};

/// The file's value. Throws Error(file) naming the file, and line and column, where it cannot be read, is larger or
/// deeper than the limits, is not JSON in UTF-8, or an object has a key twice.
nlohmann::json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

/// The same for a text already in memory; `name` stands in messages where the file's path would.
nlohmann::json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});

/// A value, or a name out of a file, as messages show it: cut short where it is long.
std::string shown(const nlohmann::json& value);
std::string shown(const std::string& name);

/// JSON over several lines, or in one; what is not UTF-8 in it, as file names may be, becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& value, bool one_line = false);

/// A whole regular file of at most `max_bytes` bytes, or Error(file).
std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes);

/// Typed access to an object of a JSON file. Every refusal is Error(file) naming the file, the key's full path, the
/// value found and what would be accepted. It refers to the json value: keep that alive.
class JsonObject {
public:
  /// `path` is where the value stands in the file ("" for the whole file). Throws where it is no object.
  JsonObject(const nlohmann::json& value, std::string file, std::string path = "");

  bool has(const std::string& key) const;      // present and not null
  bool present(const std::string& key) const;  // present, null included
  /// Required values. An integer is written without fraction or exponent and lies in [min, max]; a number is finite.
  std::int64_t integer(const std::string& key, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  double number(const std::string& key) const;
  bool boolean(const std::string& key) const;
  std::string string(const std::string& key) const;
  JsonObject object(const std::string& key) const;
  const nlohmann::json& array(const std::string& key) const;
  const nlohmann::json& value(const std::string& key) const;  // of any type
  /// The same with what an absent or null key stands for.
  std::int64_t integer_or(const std::string& key, std::int64_t absent, std::int64_t min, std::int64_t max) const;
  double number_or(const std::string& key, double absent) const;
  bool boolean_or(const std::string& key, bool absent) const;
  std::string string_or(const std::string& key, const std::string& absent) const;

  const nlohmann::json& raw() const { return *value_; }
  const std::string& file() const { return file_; }
  std::string path_of(const std::string& key) const;
  /// Error(file): "FILE: key \"a.b\" is VALUE; PROBLEM".
  [[noreturn]] void refuse(const std::string& key, const std::string& problem) const;

private:
  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace distzo2
