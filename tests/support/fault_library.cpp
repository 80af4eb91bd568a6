// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into the program (LD_PRELOAD): makes a disk fail where DISTZO2_TEST_FAULT says, "pwritev chunks.bin 7 28":
// from the 7th call of pwritev on a file of this name on, each fails with errno 28. In place of the number: `kill` ends
// the process before that call, `short` and `interrupt` let it move half of the bytes or none, that one time.
#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string call, file, what;
  long first = 0;
  Fault() {
    const char* const text = std::getenv("DISTZO2_TEST_FAULT");
    if (text != nullptr) std::istringstream(text) >> call >> file >> first >> what;
  }
};

/// What this call is to do: "" what it does anyway.
std::string fault_of(const char* call, int fd) {
  static const Fault fault;
  static std::atomic<long> calls{0};
  if (fault.call != call) return {};
  char path[PATH_MAX + 1] = {};
  if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, PATH_MAX) < 0) return {};
  if (std::string(path).find("/" + fault.file) == std::string::npos) return {};
  const long n = ++calls;
  const bool once = fault.what == "short" || fault.what == "interrupt";
  if (n < fault.first || (once && n > fault.first)) return {};
  if (fault.what == "kill") ::kill(::getpid(), SIGKILL);
  return fault.what;
}

int fail(const std::string& what) {
  errno = what == "interrupt" ? EINTR : std::stoi(what);
  return -1;
}

using Transfer = ssize_t (*)(int, const iovec*, int, off_t);

ssize_t transfer(const char* call, int fd, const iovec* parts, int count, off_t offset) {
  const auto real = reinterpret_cast<Transfer>(::dlsym(RTLD_NEXT, call));
  const std::string what = fault_of(call, fd);
  if (what.empty()) return real(fd, parts, count, offset);
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
}
