// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace distzo2 {

/// The folders in which a task's name is looked up: `tasks` beside the deck, then `inputs/tasks` and
/// `share/distzo2/tasks` under each folder above the running program.
std::vector<std::filesystem::path> task_folders(const std::filesystem::path& deck);

/// The JSON file of a task given by name; a path is returned as it is. Where no folder has it, `refuse` is called with
/// a message that lists the tasks there are, and must throw.
std::filesystem::path find_task(const std::string& task, const std::filesystem::path& deck,
                                const std::function<void(const std::string&)>& refuse);

}  // namespace distzo2
