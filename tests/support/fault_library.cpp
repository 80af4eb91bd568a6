// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into the program (LD_PRELOAD): makes a disk fail where DISTZO2_TEST_FAULT says, "pwritev chunks.bin 7 28":
// from the 7th call of pwritev on a file of this name on, each fails with errno 28. In place of the number: `kill` ends
// the process before that call, `once` fails it alone, with EIO, `short` and `interrupt` let it move half of the bytes
// or none, that one time, `flip` changes the first bit of what that one call has read, `buffered` refuses direct
// transfers from that call on, the first of them once a second one is under way, and the others once the file is
// buffered, `term` sends SIGTERM first, that one time, `sleep` takes 3.5 s first, that one time, and `fill` first takes
// all that is free on the disk, that one time, for the file that DISTZO2_TEST_BALLAST names. Several faults are parted
// by semicolons.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <thread>

namespace {

struct Fault {
  std::string call, file, what;
  long first = 0;
  std::atomic<long> calls{0};
};

std::deque<Fault> faults_of_environment() {
  std::deque<Fault> faults;
  const char* const text = std::getenv("DISTZO2_TEST_FAULT");
  std::istringstream list(text != nullptr ? text : "");
  for (std::string one; std::getline(list, one, ';');) {
    Fault& f = faults.emplace_back();
    std::istringstream(one) >> f.call >> f.file >> f.first >> f.what;
  }
  return faults;
}

void fill_disk() {
  static const std::array<char, 65536> zeros{};
  const char* const path = std::getenv("DISTZO2_TEST_BALLAST");
  const int fd = path != nullptr ? ::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (fd < 0) std::abort();
  for (std::size_t bytes = zeros.size(); bytes > 0; bytes /= 16)
    while (::write(fd, zeros.data(), bytes) > 0) {
    }
  ::close(fd);
}

/// What this call is to do: "" what it does anyway.
std::string fault_of(const char* call, int fd) {
  static std::deque<Fault> faults = faults_of_environment();
  for (Fault& fault : faults) {
    if (fault.call != call) continue;
    char path[PATH_MAX + 1] = {};
    if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, PATH_MAX) < 0) continue;
    if (std::string(path).find("/" + fault.file) == std::string::npos) continue;
    const long n = ++fault.calls;
    const bool once = fault.what != "buffered" &&
                      std::isdigit(static_cast<unsigned char>(fault.what[0])) == 0;  // `kill` has but one time anyway
    if (n < fault.first || (once && n > fault.first)) continue;
    if (fault.what == "kill") ::kill(::getpid(), SIGKILL);
    if (fault.what == "term") {
      ::kill(::getpid(), SIGTERM);
      continue;
    }
    if (fault.what == "sleep") {
      std::this_thread::sleep_for(std::chrono::milliseconds(3500));
      continue;
    }
    if (fault.what != "fill") return fault.what;
    fill_disk();
  }
  return {};
}

int fail(const std::string& what) {
  errno = what == "interrupt" ? EINTR : what == "once" ? EIO : std::stoi(what);
  return -1;
}

/// Two threads have begun a direct transfer before either is refused, as on file systems that open files for direct
/// transfers and then refuse them.
bool refuses_direct(int fd) {
  static std::atomic<int> under_way{0};
  const auto is_direct = [&] { return (::fcntl(fd, F_GETFL) & O_DIRECT) != 0; };
  if (!is_direct()) return false;
  const bool first = under_way++ == 0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((first ? under_way < 2 : is_direct()) && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  return true;
}

using Transfer = ssize_t (*)(int, const iovec*, int, off_t);

ssize_t transfer(const char* call, int fd, const iovec* parts, int count, off_t offset) {
  const auto real = reinterpret_cast<Transfer>(::dlsym(RTLD_NEXT, call));
  const std::string what = fault_of(call, fd);
  if (what.empty()) return real(fd, parts, count, offset);
  if (what == "flip") {
    const ssize_t moved = real(fd, parts, count, offset);
    if (moved > 0) *static_cast<unsigned char*>(parts[0].iov_base) ^= 1U;
    return moved;
  }
  if (what == "buffered") return refuses_direct(fd) ? fail(std::to_string(EINVAL)) : real(fd, parts, count, offset);
  if (what != "short") return fail(what);
  iovec half = parts[0];
  half.iov_len = half.iov_len / 2 / 4096 * 4096;
  return half.iov_len == 0 ? fail("interrupt") : real(fd, &half, 1, offset);
}

}  // namespace

extern "C" {
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return transfer("pwritev", fd, parts, count, offset);
}
ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) {
  return transfer("preadv", fd, parts, count, offset);
}
int fdatasync(int fd) {
  const std::string what = fault_of("fdatasync", fd);
  if (!what.empty()) return fail(what);
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
int fsync(int fd) {
  const std::string what = fault_of("fsync", fd);
  if (!what.empty()) return fail(what);
  return reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"))(fd);
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  const std::string what = fault_of("fallocate", fd);
  if (!what.empty()) return fail(what);
  return reinterpret_cast<int (*)(int, int, off_t, off_t)>(::dlsym(RTLD_NEXT, "fallocate"))(fd, mode, offset, bytes);
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  const std::string what = fault_of("posix_fallocate", fd);
  if (!what.empty()) return std::stoi(what);
  return reinterpret_cast<int (*)(int, off_t, off_t)>(::dlsym(RTLD_NEXT, "posix_fallocate"))(fd, offset, bytes);
}
}
