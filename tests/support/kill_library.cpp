// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into the program (LD_PRELOAD): kills it before the k-th call that changes files below DISTZO2_KILL_ROOT, k
// in DISTZO2_KILL_AT (0: never), counted over all of its ranks, and keeps in the folder DISTZO2_KILL_JOURNAL what
// undoes each call, in `journal`, with their number in `calls`. Of what was not made durable a power loss may leave any
// part: scripts/python/power_loss.py takes it back. No call is under way in another rank as the program is killed.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

int raw_open(const std::string& path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, 0600));
}

struct Watch {
  std::string root = variable("DISTZO2_KILL_ROOT") + "/", folder = variable("DISTZO2_KILL_JOURNAL") + "/";
  long kill_at = std::atol(variable("DISTZO2_KILL_AT").c_str());
  int journal = raw_open(folder + "journal", O_WRONLY | O_CREAT | O_APPEND), counter = -1;
  volatile long* calls = nullptr;
  std::mutex mutex;

  Watch() {
    counter = raw_open(folder + "calls", O_RDWR | O_CREAT);
    if (counter < 0) return;  // nothing is watched
    ::syscall(SYS_ftruncate, counter, sizeof(long));
    calls = static_cast<long*>(::mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, counter, 0));
    if (calls == MAP_FAILED) std::abort();
  }
};

Watch& watch() {
  static Watch* const w = new Watch;  // until the very end of the process
  return *w;
}

std::string path_of(int fd) {
  char path[PATH_MAX + 1] = {};
  return ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, PATH_MAX) < 0 ? "" : path;
}

std::string path_at(int folder, const char* name) {
  if (name[0] == '/') return fs::path(name).lexically_normal();
  char here[PATH_MAX + 1] = {};
  const std::string base = folder != AT_FDCWD ? path_of(folder) : ::getcwd(here, PATH_MAX) != nullptr ? here : "";
  return (fs::path(base) / name).lexically_normal();
}

/// A call that changes files: it holds all others up, and is counted. No call is one where nothing is watched.
class Call {
public:
  explicit Call(const std::string& path) : watched_(watch().calls != nullptr && path.starts_with(watch().root)) {
    if (!watched_) return;
    watch().mutex.lock();
    while (::flock(watch().counter, LOCK_EX) != 0) {
    }
    number_ = watch().calls[0] + 1;
    if (watch().kill_at != 0 && number_ >= watch().kill_at) {
      ::kill(::getpid(), SIGKILL);
      while (true) ::pause();
    }
    watch().calls[0] = number_;
  }
  ~Call() {
    if (!watched_) return;
    const int error = errno;
    ::flock(watch().counter, LOCK_UN);
    watch().mutex.unlock();
    errno = error;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return watched_; }

  void note(const std::string& line) const {
    const std::string text = line + "\n";
    if (::syscall(SYS_write, watch().journal, text.data(), text.size()) != static_cast<long>(text.size())) std::abort();
  }
  std::string saved_name() const { return std::to_string(number_); }
  /// Keeps these bytes of a file; its name.
  std::string save(const std::string& path, off_t from, off_t end) const {
    if (end <= from) return "-";
    const int in = raw_open(path, O_RDONLY), out = raw_open(watch().folder + saved_name(), O_WRONLY | O_CREAT);
    while (from < end) {
      char bytes[65536];
      const auto n = ::syscall(SYS_pread64, in, bytes, std::min<off_t>(end - from, sizeof bytes), from);
      if (n <= 0 || ::syscall(SYS_write, out, bytes, n) != n) std::abort();
      from += n;
    }
    ::close(in);
    ::close(out);
    return saved_name();
  }
  /// Keeps a file that is to be removed; its name, "-" where there is none.
  std::string keep(const std::string& path) const {
    return ::link(path.c_str(), (watch().folder + saved_name()).c_str()) == 0 ? saved_name() : "-";
  }

private:
  bool watched_;
  long number_ = 0;
};

std::string place(const std::string& path) {
  struct stat s {};
  const fs::path file(path);
  ::stat(file.parent_path().c_str(), &s);
  return std::to_string(s.st_ino) + "\t" + file.filename().string();
}

bool status(const std::string& path, struct stat& s) {
  return ::lstat(path.c_str(), &s) == 0;
}

/// Notes that these bytes of an open file are about to be written.
void note_data(const Call& call, int fd, off_t offset, off_t bytes) {
  struct stat s {};
  ::fstat(fd, &s);
  const std::string saved =
      call.save("/proc/self/fd/" + std::to_string(fd), offset, std::min(s.st_size, offset + bytes));
  call.note("data\t" + std::to_string(s.st_ino) + "\t" + std::to_string(offset) + "\t" + std::to_string(bytes) + "\t" +
            std::to_string(s.st_size) + "\t" + saved);
}

void note_cut(const Call& call, const std::string& path, const struct stat& s, off_t size) {
  if (size == s.st_size) return;
  const std::string saved = call.save(path, size, s.st_size);
  call.note("cut\t" + std::to_string(s.st_ino) + "\t" + std::to_string(size) + "\t" + std::to_string(s.st_size) + "\t" +
            saved);
}

void note_open(const Call& call, const std::string& path, int flags) {
  struct stat s {};
  if (!status(path, s)) {
    if ((flags & O_CREAT) != 0) call.note("create\t" + place(path));
  } else if ((flags & O_TRUNC) != 0) {
    note_cut(call, path, s, 0);
  }
}

int open_at(int folder, const char* name, int flags, mode_t mode) {
  const bool changes = (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_ACCMODE) != O_RDONLY;
  const std::string path = changes ? path_at(folder, name) : "";
  const Call call(path);
  if (call) note_open(call, path, flags);
  return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
}

FILE* open_stream(const char* function, const char* name, const char* mode) {
  const std::string path = mode[0] != 'r' ? path_at(AT_FDCWD, name) : "";
  const Call call(path);
  if (call) note_open(call, path, O_CREAT | (mode[0] == 'w' ? O_TRUNC : 0));
  return reinterpret_cast<FILE* (*)(const char*, const char*)>(::dlsym(RTLD_NEXT, function))(name, mode);
}

off_t end_of_write(int fd) {
  struct stat s {};
  if ((::fcntl(fd, F_GETFL) & O_APPEND) != 0 && ::fstat(fd, &s) == 0) return s.st_size;
  return ::lseek(fd, 0, SEEK_CUR);
}

off_t bytes_of(const iovec* parts, int count) {
  off_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += static_cast<off_t>(parts[i].iov_len);
  return bytes;
}

int unlink_at(int folder, const char* name, int flags) {
  const std::string path = path_at(folder, name);
  const Call call(path);
  struct stat s {};
  if (call && status(path, s)) {
    if (!S_ISDIR(s.st_mode)) call.note("unlink\t" + place(path) + "\t" + call.keep(path));
  }
  const int result = static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
  if (call && result == 0 && (flags & AT_REMOVEDIR) != 0)
    call.note("rmdir\t" + place(path) + "\t" + std::to_string(s.st_ino));
  return result;
}

int rename_at(int folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const std::string source = path_at(folder, from), target = path_at(to_folder, to);
  const Call call(source);
  struct stat s {};
  std::string saved = "-";
  if (call && flags == 0 && status(target, s))
    saved = S_ISDIR(s.st_mode) ? "folder" : call.keep(target);  // an empty one
  const int result = static_cast<int>(::syscall(SYS_renameat2, folder, from, to_folder, to, flags));
  if (call && result == 0)
    call.note((flags == 0 ? "rename\t" : "swap\t") + place(source) + "\t" + place(target) + "\t" + saved);
  return result;
}

/// What is watched need not reach the disk: that it was asked to is noted.
int sync(int fd, long number) {
  const Call call(path_of(fd) + "/");
  if (!call) return static_cast<int>(::syscall(number, fd));
  struct stat s {};
  ::fstat(fd, &s);
  call.note("sync\t" + std::to_string(s.st_ino));
  return 0;
}

int grow(int fd, int mode, off_t offset, off_t bytes) {
  const Call call(path_of(fd));
  struct stat s {};
  ::fstat(fd, &s);
  if (call && mode == 0 && offset + bytes > s.st_size) note_data(call, fd, s.st_size, offset + bytes - s.st_size);
  return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, bytes));
}

}  // namespace

extern "C" {
int open(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_at(AT_FDCWD, name, flags, mode);
}
int openat(int folder, const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return open_at(folder, name, flags, mode);
}
FILE* fopen(const char* name, const char* mode) {
  return open_stream("fopen", name, mode);
}
FILE* fopen64(const char* name, const char* mode) {
  return open_stream("fopen64", name, mode);
}
ssize_t write(int fd, const void* bytes, size_t count) {
  const Call call(path_of(fd));
  if (call) note_data(call, fd, end_of_write(fd), static_cast<off_t>(count));
  return ::syscall(SYS_write, fd, bytes, count);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  const Call call(path_of(fd));
  if (call) note_data(call, fd, end_of_write(fd), bytes_of(parts, count));
  return ::syscall(SYS_writev, fd, parts, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  const Call call(path_of(fd));
  if (call) note_data(call, fd, offset, static_cast<off_t>(count));
  return ::syscall(SYS_pwrite64, fd, bytes, count, offset);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  const Call call(path_of(fd));
  if (call) note_data(call, fd, offset, bytes_of(parts, count));
  return ::syscall(SYS_pwritev, fd, parts, count, offset, 0L);
}
int ftruncate(int fd, off_t size) {
  const Call call(path_of(fd));
  struct stat s {};
  if (call && ::fstat(fd, &s) == 0) note_cut(call, "/proc/self/fd/" + std::to_string(fd), s, size);
  return static_cast<int>(::syscall(SYS_ftruncate, fd, size));
}
int truncate(const char* name, off_t size) {
  const std::string path = path_at(AT_FDCWD, name);
  const Call call(path);
  struct stat s {};
  if (call && status(path, s)) note_cut(call, path, s, size);
  return static_cast<int>(::syscall(SYS_truncate, name, size));
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return grow(fd, mode, offset, bytes);
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  return grow(fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int fsync(int fd) {
  return sync(fd, SYS_fsync);
}
int fdatasync(int fd) {
  return sync(fd, SYS_fdatasync);
}
int mkdir(const char* name, mode_t mode) {
  const std::string path = path_at(AT_FDCWD, name);
  const Call call(path);
  const int result = static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, name, mode));
  if (call && result == 0) call.note("mkdir\t" + place(path));
  return result;
}
int unlink(const char* name) {
  return unlink_at(AT_FDCWD, name, 0);
}
int unlinkat(int folder, const char* name, int flags) {
  return unlink_at(folder, name, flags);
}
int rmdir(const char* name) {
  return unlink_at(AT_FDCWD, name, AT_REMOVEDIR);
}
int remove(const char* name) {
  struct stat s {};
  return unlink_at(AT_FDCWD, name, ::lstat(name, &s) == 0 && S_ISDIR(s.st_mode) ? AT_REMOVEDIR : 0);
}
int rename(const char* from, const char* to) {
  return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return rename_at(folder, from, to_folder, to, flags);
}
}
