// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/error.hpp"

#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace distzo2 {

/// Reads hostile bytes as one kind of file; true where they were taken for one. The name is that of its folder in
/// corpus/.
struct FuzzTarget {
  const char* name;
  bool (*read)(std::string_view input);
};

/// Those of this program, by name. A variable of RegisteredTarget adds one before main.
const std::vector<FuzzTarget>& fuzz_targets();
struct RegisteredTarget {
  RegisteredTarget(const char* name, bool (*read)(std::string_view input));
};

/// A defect that a target itself finds: what was read contradicts itself.
[[noreturn]] void found(const std::string& defect);

/// Whether `f` came to its end. That it refuses its input as a bad file or deck is well, with a message; whatever else
/// it throws is a defect, an Error about the program's own mistakes included.
template <class F>
bool accepted(F&& f) {
  try {
    f();
    return true;
  } catch (const Error& e) {
    if (e.code() != ExitCode::file && e.code() != ExitCode::usage) found(std::string("not the input's: ") + e.what());
    if (*e.what() == '\0') found("a refusal without a message");
    return false;
  }
}

/// A folder for files that are read, of this process and name; in memory where the system has such a place.
std::filesystem::path fuzz_folder(const char* name);

void write_bytes(const std::filesystem::path& file, std::string_view bytes);

/// The input cut at zero bytes, as several files are given in one; the last part is all that is left.
std::vector<std::string_view> parts_of(std::string_view input, std::size_t most);

/// Writes the parts as these files. One whose part is missing or empty is removed.
void write_parts(const std::filesystem::path& folder, std::initializer_list<const char*> names, std::string_view input);

}  // namespace distzo2
