// SPDX-License-Identifier: BSD-3-Clause
#include "app/standard_streams.hpp"

#include "core/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace distzo2 {

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is taken, which is this one, as those below are open.
    if (::open("/dev/null", O_RDWR) != fd) ::_exit(static_cast<int>(ExitCode::file));
  }
}

}  // namespace distzo2
