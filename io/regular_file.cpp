// SPDX-License-Identifier: BSD-3-Clause
#include "io/regular_file.hpp"

#include "io/fail.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

namespace distzo2 {
namespace {

const char* kind_of_file(std::filesystem::file_type type) {
  using std::filesystem::file_type;
  switch (type) {
    case file_type::directory:
      return "a folder";
    case file_type::fifo:
      return "a pipe";
    case file_type::socket:
      return "a socket";
    case file_type::character:
    case file_type::block:
      return "a device";
    default:
      return "something else";
  }
}

}  // namespace

void expect_regular_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) return;
  if (status.type() == fs::file_type::none) fail(path, "cannot be read: " + error.message());
  if (fs::exists(status)) fail(path, fmt::format("not a regular file but {}", kind_of_file(status.type())));
  if (std::error_code none; fs::is_symlink(path, none))
    fail(path,
         fmt::format("no such file: it is a link to {}, which is not there", fs::read_symlink(path, none).string()));
  fail(path, std::string("no such file"));
}

}  // namespace distzo2
