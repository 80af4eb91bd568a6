// SPDX-License-Identifier: BSD-3-Clause
#include "io/dataset.hpp"

#include <fmt/format.h>
#include <unicode/ustring.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "io/fail.hpp"
#include "io/json_file.hpp"

namespace distzo2 {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 30;
constexpr std::size_t max_columns = 1024;
constexpr std::size_t max_column_bytes = 4096;  // of a name
constexpr std::size_t max_cells = std::size_t{1} << 28;
constexpr std::size_t max_rows = std::numeric_limits<std::uint32_t>::max() - 1;

struct Line {
  std::string_view text;
  std::uint64_t number = 0;  // from 1
};

[[noreturn]] void refuse(const std::filesystem::path& path, std::uint64_t line, const std::string& problem) {
  fail(fmt::format("{}, line {}: {}", path.string(), line, problem));
}

/// Takes lines off a text; a carriage return before the line feed belongs to neither.
class Lines {
public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(Line& line) {
    if (rest_.empty()) {
      return false;
    }
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line.text = rest_.substr(0, end);
    line.number = ++number_;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.text.ends_with('\r')) {
      line.text.remove_suffix(1);
    }
    return true;
  }

private:
  std::string_view rest_;
  std::uint64_t number_ = 0;
};

void check_utf8(const std::filesystem::path& path, const Line& line) {
  if (line.text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    refuse(path, line.number, "a line of 2 GiB or more");
  }
  UErrorCode status = U_ZERO_ERROR;
  std::int32_t units = 0;
  u_strFromUTF8(nullptr, 0, &units, line.text.data(), static_cast<std::int32_t>(line.text.size()), &status);
  if (status == U_INVALID_CHAR_FOUND) {
    refuse(path, line.number, "not valid UTF-8; the file must be in UTF-8");
  }
}

std::vector<std::string_view> cells_of(const std::filesystem::path& path, const Line& numbered) {
  std::vector<std::string_view> cells;
  const std::string_view line = numbered.text;
  std::size_t begin = 0;
  for (;;) {
    if (cells.size() == max_columns) {
      refuse(path, numbered.number, fmt::format("more than {} columns", max_columns));
    }
    const std::size_t tab = line.find('\t', begin);
    cells.push_back(line.substr(begin, tab == std::string_view::npos ? tab : tab - begin));
    if (tab == std::string_view::npos) {
      return cells;
    }
    begin = tab + 1;
  }
}

void check_columns(const Dataset& data, std::uint64_t line) {
  std::set<std::string_view> seen;
  for (const std::string& column : data.columns) {
    if (column.empty()) {
      refuse(data.path, line, "a column has no name");
    }
    if (column.size() > max_column_bytes) {
      refuse(data.path, line,
             fmt::format("a column's name has {} bytes; at most {} are accepted", column.size(), max_column_bytes));
    }
    if (!seen.insert(column).second) {
      refuse(data.path, line, fmt::format("column \"{}\" stands twice", column));
    }
  }
}

void add_line_number(Dataset& data, std::uint64_t line) {
  if (data.lines.size() >= max_rows) {
    refuse(data.path, line, fmt::format("more than {} rows", max_rows));
  }
  if (data.cells.size() > max_cells) {
    refuse(data.path, line, fmt::format("more than {} cells in all", max_cells));
  }
  data.lines.push_back(line);
}

void read_tsv(Dataset& data, std::string_view text) {
  Lines lines(text);
  Line line;
  if (!lines.next(line)) {
    return;
  }
  check_utf8(data.path, line);
  for (const std::string_view name : cells_of(data.path, line)) {
    data.columns.emplace_back(name);
  }
  check_columns(data, line.number);
  std::uint64_t blank = 0;  // an empty line, which may only stand at the end
  while (lines.next(line)) {
    if (line.text.empty()) {
      blank = blank == 0 ? line.number : blank;
      continue;
    }
    if (blank != 0) {
      refuse(data.path, blank, "an empty line between rows");
    }
    check_utf8(data.path, line);
    const auto cells = cells_of(data.path, line);
    if (cells.size() != data.columns.size()) {
      refuse(data.path, line.number,
             fmt::format("{} tab-separated column{}; the header has {} ({})", cells.size(),
                         cells.size() == 1 ? "" : "s", data.columns.size(), fmt::join(data.columns, ", ")));
    }
    const auto quoted = [](std::string_view c) { return c.size() > 1 && c.starts_with('"') && c.ends_with('"'); };
    if (std::ranges::any_of(cells, quoted)) ++data.quoted_rows;
    data.cells.insert(data.cells.end(), cells.begin(), cells.end());
    add_line_number(data, line.number);
  }
}

using Cells = std::vector<std::pair<std::string, std::string>>;

void flatten(const Dataset& data, std::uint64_t line, const std::string& outer, const nlohmann::json& object,
             Cells& cells) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = outer.empty() ? key : outer + "." + key;
    if (cells.size() == max_columns || name.size() > max_column_bytes) {
      refuse(data.path, line,
             fmt::format("more than {} columns, or a name of more than {} bytes", max_columns, max_column_bytes));
    }
    if (value.is_object()) {
      flatten(data, line, name, value, cells);
    } else if (value.is_string()) {
      cells.emplace_back(name, value.get<std::string>());
    } else if (value.is_number() || value.is_boolean()) {
      cells.emplace_back(name, value.dump());
    } else {
      refuse(data.path, line,
             fmt::format("key \"{}\" is {}; text, a number, true, false or an object of these is accepted", name,
                         value.is_null() ? "null" : "an array"));
    }
  }
}

void read_jsonl(Dataset& data, std::string_view text) {
  Lines lines(text);
  Line line;
  while (lines.next(line)) {
    if (line.text.find_first_not_of(" \t") == std::string_view::npos) {
      continue;
    }
    check_utf8(data.path, line);
    const nlohmann::json value = parse_json(line.text, data.path.string(), {.first_line = line.number});
    if (!value.is_object()) {
      refuse(data.path, line.number, "not an object {\"column\": value, ...}");
    }
    Cells cells;
    flatten(data, line.number, "", value, cells);
    std::sort(cells.begin(), cells.end());
    if (data.lines.empty()) {
      for (const auto& [column, cell] : cells) {
        data.columns.push_back(column);
      }
      check_columns(data, line.number);
    }
    const bool same = std::equal(cells.begin(), cells.end(), data.columns.begin(), data.columns.end(),
                                 [](const auto& cell, const std::string& column) { return cell.first == column; });
    if (!same) {
      std::vector<std::string> keys;
      for (const auto& [column, cell] : cells) {
        keys.push_back(column);
      }
      refuse(data.path, line.number,
             fmt::format("keys ({}) are not those of the first row ({})", fmt::join(keys, ", "),
                         fmt::join(data.columns, ", ")));
    }
    for (auto& [column, cell] : cells) {
      data.cells.push_back(std::move(cell));
    }
    add_line_number(data, line.number);
  }
}

}  // namespace

int Dataset::find_column(std::string_view name) const {
  const auto it = std::find(columns.begin(), columns.end(), name);
  return it == columns.end() ? -1 : static_cast<int>(it - columns.begin());
}

std::string Dataset::where(std::uint32_t row) const {
  return fmt::format("{}, line {}", path.string(), lines[row]);
}

Dataset read_dataset(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending != ".tsv" && ending != ".jsonl") {
    fail(fmt::format("{}: the name of a data set ends in .tsv or .jsonl", path.string()));
  }
  const std::string bytes = read_text_file(path, max_file_bytes);
  Dataset data;
  data.path = path;
  data.digest = XXH3_64bits(bytes.data(), bytes.size());
  std::string_view text(bytes);
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  if (text.find('\n') == std::string_view::npos && text.find('\r') + 1 < text.size()) {  // npos + 1 is 0
    refuse(path, 1, "lines end in a carriage return (CR) alone; accepted: a line feed (LF), or CR LF");
  }
  if (ending == ".tsv") {
    read_tsv(data, text);
  } else {
    read_jsonl(data, text);
  }
  if (data.lines.empty()) {
    fail(fmt::format("{}: no rows{}", path.string(), data.columns.empty() ? "" : ", only a header"));
  }
  return data;
}

}  // namespace distzo2
