// SPDX-License-Identifier: BSD-3-Clause
#include "io/ranged_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/fail.hpp"

namespace distzo2 {

RangedFile::RangedFile(const std::filesystem::path& path) : RangedFile(path, ::pread) {}

RangedFile::RangedFile(const std::filesystem::path& path, Call call) : path_(path), call_(call) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe that nobody writes to is opened too
  if (fd_ < 0) fail(path_, "cannot be opened", errno);
  struct stat status {};
  const bool regular = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    static_cast<void>(::close(fd_));
    fail(path_, "not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

RangedFile::~RangedFile() {
  static_cast<void>(::close(fd_));
}

void RangedFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = call_(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, fmt::format("cannot be read at byte {}: {}", offset, std::strerror(errno)));
    if (n == 0)
      fail(path_, fmt::format("ends at byte {}, {} bytes early: it was cut short while it was read (it had {} bytes)",
                              offset, to.size(), size_));
    offset += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace distzo2
