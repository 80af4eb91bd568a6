// SPDX-License-Identifier: BSD-3-Clause
#include "io/dataset.hpp"
#include "io/task.hpp"
#include "io/unicode.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

Dataset checked_dataset(const fs::path& file) {
  Dataset data = read_dataset(file);
  if (data.rows() == 0 || data.columns.empty() || data.cells.size() != data.rows() * data.columns.size())
    found("rows and cells do not fit");
  if (!std::ranges::is_sorted(data.lines, std::less_equal<>()) || data.lines[0] == 0)
    found("lines are not in their order");
  for (const std::string& cell : data.cells)
    if (invalid_utf8_at(cell) != std::string::npos) found("a cell is no UTF-8");
  return data;
}

bool read_tsv_rows(std::string_view input) {
  static const fs::path file = fuzz_folder("dataset") / "data.tsv";
  write_bytes(file, input);
  return accepted([&] { checked_dataset(file); });
}

bool read_jsonl_rows(std::string_view input) {
  static const fs::path file = fuzz_folder("dataset") / "data.jsonl";
  write_bytes(file, input);
  return accepted([&] { checked_dataset(file); });
}

/// A task's file and, behind a zero byte, the rows of a TSV that it words.
bool read_task_and_rows(std::string_view input) {
  static const fs::path folder = fuzz_folder("task");
  write_parts(folder, {"task.json", "data.tsv"}, input);
  return accepted([&] {
    const Task task = read_task(folder / "task.json");
    const Dataset data = checked_dataset(folder / "data.tsv");
    const TaskReader reader(task, data);
    for (std::uint32_t row = 0; row < std::min(data.rows(), 32U); ++row)
      accepted([&] {
        const TaskText text = reader.text(row);
        if (text.label < 0 || text.label >= std::ssize(text.answers)) found("a label without an answer");
        for (const std::string& answer : text.answers)
          if (invalid_utf8_at(text.prompt + answer) != std::string::npos) found("a prompt is no UTF-8");
      });
  });
}

const RegisteredTarget tsv_target("dataset_tsv", read_tsv_rows);
const RegisteredTarget jsonl_target("dataset_jsonl", read_jsonl_rows);
const RegisteredTarget task_target("task", read_task_and_rows);

}  // namespace
}  // namespace distzo2
