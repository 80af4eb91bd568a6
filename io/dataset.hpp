// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// Rows of named text columns, as read from a file.
struct Dataset {
  std::filesystem::path path;
  std::vector<std::string> columns;
  std::vector<std::string> cells;    // (rows, columns)
  std::vector<std::uint64_t> lines;  // (rows), line of the file, from 1
  std::uint64_t digest = 0;          // XXH3-64 of the file's bytes
  std::uint32_t quoted_rows = 0;     // of a TSV: with a cell in double quotes, which are taken as text

  std::uint32_t rows() const { return static_cast<std::uint32_t>(lines.size()); }
  const std::string& cell(std::uint32_t row, std::size_t column) const { return cells[row * columns.size() + column]; }
  int find_column(std::string_view name) const;  // -1 where there is none
  std::string where(std::uint32_t row) const;    // "train.tsv, line 7"
};

/// Reads a labelled data set by the ending of its name: `.tsv` (a header, tabs, quotes literal, LF or CRLF) or `.jsonl`
/// (an object a line: text, numbers, true and false; objects inside become columns "outer.inner"). UTF-8, a byte-order
/// mark is dropped. Throws Error (file) naming file, line and what is wrong: wrong column counts, other keys than the
/// first line's, invalid UTF-8, no rows, over 4 GiB, over 1,024 columns, over 2^32 - 2 rows, over 2^28 cells.
Dataset read_dataset(const std::filesystem::path& path);

}  // namespace distzo2
