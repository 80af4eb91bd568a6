// SPDX-License-Identifier: BSD-3-Clause
#include "app/find_task.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "io/units.hpp"

namespace distzo2 {

namespace fs = std::filesystem;

std::vector<fs::path> task_folders(const fs::path& deck) {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& folder) {
    std::error_code ignored;  // a folder that cannot be seen holds no tasks for us
    if (fs::is_directory(folder, ignored)) {
      folders.push_back(folder);
    }
  };
  add(fs::absolute(deck).parent_path() / "tasks");
  std::error_code unreadable;
  const fs::path program = fs::read_symlink("/proc/self/exe", unreadable);
  for (fs::path at = program.parent_path(); at.has_relative_path(); at = at.parent_path()) {
    add(at / "inputs" / "tasks");
    add(at / "share" / "distzo2" / "tasks");
  }
  return folders;
}

fs::path find_task(const std::string& task, const fs::path& deck,
                   const std::function<void(const std::string&)>& refuse) {
  if (fs::path(task).is_absolute()) {
    return task;
  }
  std::set<std::string> names;
  for (const fs::path& folder : task_folders(deck)) {
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.path().extension() == ".json") {
        names.insert(file.path().stem().string());
        if (file.path().stem() == task) {
          return file.path().lexically_normal();
        }
      }
    }
  }
  names.insert("random tokens");
  const std::string near = nearest_name(task, names);
  refuse(fmt::format("there is no task \"{}\"{}; accepted: {}", task,
                     near.empty() ? near : fmt::format("; did you mean \"{}\"?", near), fmt::join(names, ", ")));
  throw Error(ExitCode::internal, "find_task: refuse returned");
}

}  // namespace distzo2
