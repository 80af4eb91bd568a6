// SPDX-License-Identifier: BSD-3-Clause
#include "app/terminal.hpp"

#include "app/process_status.hpp"
#include "parallel/launcher.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// The process that started this one, 0 where that cannot be known.
pid_t parent_of(pid_t process) {
  return static_cast<pid_t>(process_status(std::to_string(process), "PPid:"));
}

/// What its standard output is; empty where that cannot be known.
std::string output_of(pid_t process) {
  std::error_code none;
  return fs::read_symlink(fs::path("/proc") / std::to_string(process) / "fd/1", none).string();
}

}  // namespace

bool prints_to_terminal() {
  if (::isatty(STDOUT_FILENO) != 1) return false;
  if (!find_launcher()) return true;
  // The nearest process above whose output is another one is the launcher, or what it has on this node.
  const std::string own = output_of(::getpid());
  for (pid_t process = ::getppid(); process > 0; process = parent_of(process)) {
    const std::string other = output_of(process);
    if (other != own) return other.starts_with("/dev/pts/") || other.starts_with("/dev/tty");
  }
  return true;  // all have this one terminal
}

}  // namespace distzo2
