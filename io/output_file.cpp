// SPDX-License-Identifier: BSD-3-Clause
#include "io/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "io/fail.hpp"

namespace distzo2 {

namespace {

namespace fs = std::filesystem;

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.lexically_normal().parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

std::string prefix_beside(const fs::path& target) {
  return fmt::format(".{}.partial-", target.filename().string());
}

/// Calls `create(path)` with names beside `target` until it does not fail with EEXIST, and returns the path.
template <class Create>
fs::path create_beside(const fs::path& target, const Create& create) {
  static std::atomic<unsigned> made = 0;  // of this process
  for (;;) {
    const fs::path path = target.parent_path() / fmt::format("{}{}-{}", prefix_beside(target), ::getpid(), ++made);
    if (create(path)) {
      return path;
    }
    if (errno != EEXIST) {
      fail(target, "cannot be created", errno);
    }
  }
}

}  // namespace

OutputFile::OutputFile(fs::path path, int fd) : path_(std::move(path)), fd_(fd) {}

OutputFile OutputFile::beside(const fs::path& target) {
  int fd = -1;
  fs::path path = create_beside(target, [&](const fs::path& name) {
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd >= 0;
  });
  return {std::move(path), fd};
}

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  // A pipe that nobody reads would be waited for; later writes to one may wait.
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd_ < 0) {
    fail(path_, errno == ENXIO ? "cannot be written, as nobody reads it" : "cannot be created", errno);
  }
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_NONBLOCK) != 0) {
    const int error = errno;
    static_cast<void>(::close(std::exchange(fd_, -1)));  // a constructor that throws has no destructor
    fail(path_, "was opened, but cannot be made to wait for its reader", error);
  }
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) {
    static_cast<void>(::close(fd_));  // an error is under way already, or the caller gave the file up
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) {
      fail(path_, "cannot be written", errno);
    }
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
}

void OutputFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text.data(), text.size())));
}

void OutputFile::finish() {
  if (::fsync(fd_) != 0) {
    fail(path_, "cannot be made durable", errno);
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    fail(path_, "cannot be closed", errno);
  }
}

void write_file(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
}

void replace_text_file(const fs::path& path, std::string_view text) {
  std::error_code ec;
  if (fs::exists(path, ec) && !fs::is_regular_file(path, ec)) {
    OutputFile file(path);
    file.write(text);
    return;
  }
  const fs::path target = fs::is_symlink(path, ec) ? fs::weakly_canonical(path) : path;
  OutputFile file = OutputFile::beside(target);
  try {
    file.write(text);
    file.finish();
    if (::rename(file.path().c_str(), target.c_str()) != 0) {
      fail(path, "cannot be replaced", errno);
    }
  } catch (...) {
    fs::remove(file.path(), ec);  // an error is under way already
    throw;
  }
}

fs::path make_folder_beside(const fs::path& target) {
  return create_beside(target, [](const fs::path& path) { return ::mkdir(path.c_str(), 0777) == 0; });
}

bool is_made_beside(const fs::path& target, const std::string& name) {
  const std::string prefix = prefix_beside(target);
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789-", prefix.size()) == std::string::npos;
}

bool publish_folder(const fs::path& from, const fs::path& to) {
  // A folder takes the place of an empty one alone.
  if (::rename(from.c_str(), to.c_str()) == 0) {
    sync_folder(parent_of(to));
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
    return false;
  }
  fail(to, "cannot be renamed into place", errno);
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    fail(folder, "cannot be opened", errno);
  }
  // EINVAL: a file system without durable folders, where there is nothing to be done
  const int error = ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
  static_cast<void>(::close(fd));
  if (error != 0) {
    fail(folder, "cannot be made durable", error);
  }
}

void replace_folder(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  if (fs::exists(fs::symlink_status(to, ec))) {  // a link to nothing stands there too
    // Swapping leaves a whole folder at `to` at every moment; where the file system cannot, there is a short gap.
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      sync_folder(parent_of(to));
      fs::remove_all(from, ec);
      if (ec) {
        fail(from, "the replaced folder cannot be removed", ec.value());
      }
      return;
    }
    if (errno != EINVAL && errno != ENOSYS) {
      fail(to, "cannot be replaced", errno);
    }
    fs::remove_all(to, ec);
    if (ec) {
      fail(to, "cannot be replaced", ec.value());
    }
  }
  fs::rename(from, to, ec);
  if (ec) {
    fail(to, "cannot be renamed into place", ec.value());
  }
  sync_folder(parent_of(to));
}

}  // namespace distzo2
