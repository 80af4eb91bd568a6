// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/target.hpp"

#include "tests/support/temporary_folder.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

std::vector<FuzzTarget>& registered() {
  static std::vector<FuzzTarget> targets;
  return targets;
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  return registered();
}

RegisteredTarget::RegisteredTarget(const char* name, bool (*read)(std::string_view input)) {
  std::vector<FuzzTarget>& targets = registered();
  const auto by_name = [](const FuzzTarget& a, const FuzzTarget& b) { return std::string_view(a.name) < b.name; };
  const FuzzTarget target{name, read};
  targets.insert(std::ranges::upper_bound(targets, target, by_name), target);
}

void found(const std::string& defect) {
  throw std::logic_error(defect);
}

fs::path fuzz_folder(const char* name) {
  static const TemporaryFolder all = [] {
    std::error_code none;
    return fs::is_directory("/dev/shm", none) ? TemporaryFolder("/dev/shm") : TemporaryFolder();
  }();
  fs::create_directories(all / name);
  return all / name;
}

void write_bytes(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::string_view> parts_of(std::string_view input, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most) {
    const std::size_t end = input.find('\0');
    if (end == std::string_view::npos) break;
    parts.push_back(input.substr(0, end));
    input.remove_prefix(end + 1);
  }
  parts.push_back(input);
  return parts;
}

void write_parts(const fs::path& folder, std::initializer_list<const char*> names, std::string_view input) {
  const std::vector<std::string_view> parts = parts_of(input, names.size());
  std::size_t i = 0;
  for (const char* name : names) {
    const std::string_view part = i < parts.size() ? parts[i] : std::string_view();
    ++i;
    if (part.empty())
      fs::remove(folder / name);
    else
      write_bytes(folder / name, part);
  }
}

}  // namespace distzo2
