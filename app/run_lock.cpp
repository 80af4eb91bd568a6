// SPDX-License-Identifier: BSD-3-Clause
#include "app/run_lock.hpp"

#include "app/process_status.hpp"
#include "core/error.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace distzo2 {
namespace {

constexpr std::size_t most_lock_bytes = 4096;

/// A lock on all of a file. It is the opened file's (OFD), not the process's: closing another one lets go of nothing.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// 22nd field of /proc/PID/stat, of which the second, a name, may hold blanks and brackets; 0 where there is none.
std::uint64_t start_of_process(std::uint64_t pid) {
  std::string stat = first_line(fmt::format("/proc/{}/stat", pid).c_str());
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 2));
  std::string field;
  for (int i = 3; i < 22; ++i) fields >> field;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

std::string batch_job() {
  constexpr std::array<std::array<const char*, 2>, 3> variables{
      {{"SLURM_JOB_ID", "slurm"}, {"PBS_JOBID", "pbs"}, {"LSB_JOBID", "lsf"}}};
  for (const auto& [variable, system] : variables)
    if (const char* const id = std::getenv(variable); id != nullptr && *id != '\0')
      return fmt::format("{} {}", system, id);
  return {};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string read_all(int fd) {
  std::string text(most_lock_bytes, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

std::string described(const LockHolder& h) {
  return fmt::format("process {} on {}{}, since {}", h.pid, h.host,
                     h.job.empty() ? "" : fmt::format(" (job {})", h.job), h.since);
}

}  // namespace

LockHolder this_process() {
  const auto pid = static_cast<std::uint64_t>(::getpid());
  return {host_name(),           pid,
          start_of_process(pid), first_line("/proc/sys/kernel/random/boot_id"),
          batch_job(),           fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))};
}

std::string text_of(const LockHolder& h) {
  return fmt::format(
      "A process works on this run. Should it be known to have ended, this file may be removed.\n"
      "host: {}\npid: {}\nstarted: {}\nboot: {}\njob: {}\nsince: {}\n",
      h.host, h.pid, h.started, h.boot, h.job.empty() ? "none" : h.job, h.since);
}

std::optional<LockHolder> holder_of(const std::string& text) {
  const auto value = [&](const std::string& key) -> std::string {
    const std::size_t at = text.find("\n" + key + ": ");
    if (at == std::string::npos) return {};
    const std::size_t begin = at + key.size() + 3;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  LockHolder h{value("host"), 0, 0, value("boot"), value("job"), value("since")};
  h.pid = std::strtoull(value("pid").c_str(), nullptr, 10);
  h.started = std::strtoull(value("started").c_str(), nullptr, 10);
  if (h.job == "none") h.job.clear();
  if (h.host.empty() || h.pid == 0) return std::nullopt;
  return h;
}

HolderState state_of(const LockHolder& holder, const LockHolder& here, bool locked) {
  if (holder.boot == here.boot) {
    // One kernel, perhaps of several containers, whose processes do not see each other but whose locks do.
    const bool alive = holder.started != 0 && start_of_process(holder.pid) == holder.started;
    return locked || !alive ? HolderState::gone : HolderState::works;
  }
  if (holder.host == here.host) return HolderState::gone;  // the machine was started anew
  // A batch system starts a job again only once its processes are gone.
  return !holder.job.empty() && holder.job == here.job ? HolderState::gone : HolderState::unknown;
}

bool is_worked_on(const RunFolder& folder) {
  const int fd = ::open(folder.lock().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // should it be a pipe
  if (fd < 0) return false;
  struct flock lock = whole_file();
  const bool locked = ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(fd);
  return locked;
}

RunLock::RunLock(const RunFolder& folder) : fd_(::open(folder.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  const std::string run = folder.path.string();
  struct flock lock = whole_file();
  const bool taken = fd_ >= 0 && ::fcntl(fd_, F_OFD_SETLK, &lock) == 0;
  const int error = errno;
  const std::optional<LockHolder> found = fd_ >= 0 ? holder_of(read_all(fd_)) : std::nullopt;
  const auto refuse = [&](const std::string& text) {
    ::close(std::exchange(fd_, -1));
    throw Error(ExitCode::usage, text);
  };
  if (fd_ >= 0 && !taken && (error == EAGAIN || error == EACCES))  // as a file system says it
    refuse(fmt::format("{}: another process works on this run{}", run, found ? ": " + described(*found) : ""));
  if (!taken)
    problem_ = fmt::format("{}: cannot be locked ({}): take care that no other process works on this run", run,
                           std::generic_category().message(error));
  const LockHolder here = this_process();
  if (found) switch (state_of(*found, here, taken)) {
      case HolderState::works:
        refuse(fmt::format("{}: another process works on this run: {}", run, described(*found)));
        break;
      case HolderState::unknown:
        refuse(
            fmt::format("{}: another process may work on this run: {}, by its lock file. If it does not run any more "
                        "there, remove {} and give the command again",
                        run, described(*found), folder.lock().string()));
        break;
      case HolderState::gone:
        note_ = fmt::format("{} ended without giving this run up: it is taken over", described(*found));
    }
  if (fd_ < 0) return;
  const std::string text = text_of(here);
  // Where the disk is full the file names nobody, and its lock alone counts.
  holds_ = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  if (holds_ && ::ftruncate(fd_, 0) != 0) holds_ = false;  // it names a process that is gone: the next one sees that
  ::close(fd_);
}

}  // namespace distzo2
