// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "core/error.hpp"

#include <cstring>
#include <filesystem>
#include <string>

namespace distzo2 {

/// Ends with exit code 3: a file is missing, broken or not what was expected; the message names it.
[[noreturn]] inline void fail(const std::string& message) {
  throw Error(ExitCode::file, message);
}

[[noreturn]] inline void fail(const std::filesystem::path& path, const std::string& what) {
  fail(path.string() + ": " + what);
}

/// The same for what the system refused, with its words for `error` (errno).
[[noreturn]] inline void fail(const std::filesystem::path& path, const char* what, int error) {
  fail(path, std::string(what) + ": " + std::strerror(error));
}

/// Ends with exit code 1: a mistake of the program's own.
[[noreturn]] inline void broken(const std::string& message) {
  throw Error(ExitCode::internal, message);
}

}  // namespace distzo2
