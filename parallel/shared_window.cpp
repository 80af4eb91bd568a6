// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/shared_window.hpp"

#include "core/chunk_table.hpp"
#include "core/error.hpp"
#include "core/round_up.hpp"
#include "parallel/mpi_handle.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <utility>

namespace distzo2 {
namespace {

/// A rank that fails is given so long to end the job with its own message before those that wait for it say theirs.
constexpr double seconds_to_end_the_job = 10;

/// What a window of the MPI library takes beside what is asked for, at most: its own words, in the same file, and one
/// page of ours.
constexpr std::size_t window_extra_bytes = std::size_t{64} * 1024 + page_bytes;

std::string short_size(double bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes < 1e9 ? "%.1f MB" : "%.2f GB", bytes < 1e9 ? bytes / 1e6 : bytes / 1e9);
  return text.data();
}

std::string problem_of(const std::string& folder, const std::string& what) {
  return "parallel/shared memory folder: " + folder + ": " + what;
}

/// A folder that `lacks` the room, and what to do about it.
std::string no_room(const std::string& folder, const std::string& lacks, std::size_t bytes, bool chosen) {
  const std::string has = folder + lacks + ", but the copy of the parameters that the ranks of a node share takes " +
                          short_size(static_cast<double>(bytes));
  return chosen ? "parallel/shared memory folder: " + has +
                      "; name a folder with more, or set parallel/slices: off (a copy a rank)"
                : has +
                      "; make it larger (containers: --shm-size), name a folder of another file system in "
                      "parallel/shared memory folder, or set parallel/slices: off (a copy a rank)";
}

/// Empty where the file system of the folder has room; else what to do about it.
std::string lack_of_space(const std::string& folder, std::size_t bytes, bool chosen) {
  struct statvfs fs {};
  if (::statvfs(folder.c_str(), &fs) != 0)
    return chosen ? problem_of(folder, std::strerror(errno)) : std::string();  // then the MPI library speaks
  struct rlimit largest {};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur != RLIM_INFINITY && largest.rlim_cur < bytes)
    return "the largest file that a rank may write (ulimit -f) has " +
           short_size(static_cast<double>(largest.rlim_cur)) +
           ", but the copy of the parameters that the ranks of a node share takes " +
           short_size(static_cast<double>(bytes)) + "; raise it, or set parallel/slices: off (a copy a rank)";
  const double free = static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize);
  if (free >= static_cast<double>(bytes)) return {};
  return no_room(folder, " has " + short_size(free) + " free", bytes, chosen);
}

/// Where Open MPI and MPICH put their windows.
std::string default_folder() {
  const char* told = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  return told != nullptr && *told != '\0' ? told : "/dev/shm";
}

}  // namespace

std::string backing_folder(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %*s %*s %*s %*s %n", &begin, &end, &path) < 2 || at < begin || at >= end)
      continue;
    const std::string file = path > 0 ? line.substr(static_cast<std::size_t>(path)) : std::string();
    return file.starts_with('/') ? file.substr(0, std::max<std::size_t>(file.rfind('/'), 1)) : std::string();
  }
  return {};
}

bool take_pages(void* address, std::size_t bytes) {
  constexpr int populate_write = 23;  // MADV_POPULATE_WRITE, which older headers lack
  return ::madvise(address, bytes, populate_write) == 0 || (errno != EFAULT && errno != ENOMEM);
}

struct SharedWindow::Window {
  MPI_Win handle = MPI_WIN_NULL;
};

SharedWindow::SharedWindow(const Communicator& node, std::size_t bytes, int rank, const std::string& folder)
    : node_(node.duplicate()), exceptions_(std::uncaught_exceptions()) {
  names_ = node_.gather(static_cast<std::uint64_t>(rank));
  used_ = round_up(sizeof(std::uint32_t) * names_.size(), page_bytes);
  bytes_ = used_ + round_up(bytes, page_bytes);
  if (!folder.empty())
    map_file(folder);
  else
    make_window();
}

void SharedWindow::throw_if_any(const std::string& problem) {
  for (const std::string& p : node_.gather(problem))
    if (!p.empty()) throw Error(ExitCode::usage, p);
}

void SharedWindow::map_file(const std::string& folder) {
  place_ = folder;
  std::string path = folder + "/distzo2-shared-XXXXXX", problem;
  int fd = -1;
  const auto failed = [&](const char* call, int code) {
    problem = problem_of(folder, std::string(call) + ": " + std::strerror(code));
  };
  // 1. The first rank makes the file. Once all have opened it, nobody needs its name: whoever is killed leaves none.
  if (node_.is_first()) {
    problem = lack_of_space(folder, bytes_, true);
    if (problem.empty() && (fd = ::mkstemp(path.data())) < 0) failed("mkstemp", errno);
  }
  const auto first_is_well = [&] { return node_.broadcast(std::uint64_t{problem.empty() ? 1U : 0U}) == 1; };
  path = node_.broadcast(path);
  if (first_is_well() && !node_.is_first() && (fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC)) < 0)
    failed("open", errno);
  node_.barrier();
  if (node_.is_first() && fd >= 0) {
    ::unlink(path.c_str());
    // 2. All of it is taken at once: later, a full disk would be a signal.
    if (const int code = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes_)); code != 0)
      failed("posix_fallocate", code);
  }
  if (first_is_well() && fd >= 0) {
    void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
      failed("mmap", errno);
    else
      data_ = static_cast<std::byte*>(mapped);
  }
  if (fd >= 0) ::close(fd);
  try {
    throw_if_any(problem);
  } catch (...) {
    if (data_ != nullptr) ::munmap(data_, bytes_);
    throw;
  }
}

void SharedWindow::make_window() {
  if (node_.size() == 1) {  // a window of one rank need not be zeroed
    void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw Error(ExitCode::usage, std::string("mmap: ") + std::strerror(errno));
    data_ = static_cast<std::byte*>(mapped);
    return;
  }
  // Asked before, too: a library that finds no space returns on the first rank alone, and the others wait for it.
  throw_if_any(node_.is_first() ? lack_of_space(default_folder(), bytes_ + window_extra_bytes, false) : std::string());
  window_ = std::make_unique<Window>();
  const auto mine = static_cast<MPI_Aint>(node_.is_first() ? bytes_ + page_bytes : 0);
  void* base = nullptr;
  check_mpi(MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node_.mpi()->comm, &base, &window_->handle),
            "MPI_Win_allocate_shared");
  MPI_Win_set_errhandler(window_->handle, MPI_ERRORS_RETURN);
  MPI_Aint size = 0;
  int unit = 0;
  check_mpi(MPI_Win_shared_query(window_->handle, 0, &size, &unit, static_cast<void*>(&base)), "MPI_Win_shared_query");
  check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_->handle), "MPI_Win_lock_all");
  data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(base), std::uintptr_t{page_bytes}));
  place_ = backing_folder(data_);
  throw_if_any(place_.empty() ? std::string() : lack_of_space(place_, bytes_, false));
  take(data_, used_);
}

void SharedWindow::take(std::byte* piece, std::size_t bytes) {
  // Who takes a page has it near: of a block each owner takes about the slice that it will update.
  const std::size_t pages = round_up(bytes, page_bytes) / page_bytes;
  const auto rank = static_cast<std::size_t>(node_.rank()), ranks = static_cast<std::size_t>(node_.size());
  const std::size_t begin = pages * rank / ranks * page_bytes, end = pages * (rank + 1) / ranks * page_bytes;
  const std::string& folder = place_.empty() ? default_folder() : place_;
  throw_if_any(take_pages(piece + begin, end - begin) ? std::string()
                                                      : no_room(folder, " has been filled meanwhile", bytes_, false));
}

SharedWindow::~SharedWindow() {
  if (data_ == nullptr) return;
  if (std::uncaught_exceptions() > exceptions_) {  // this rank fails: the job is about to be ended
    std::atomic_ref(ended(owner())).store(1, std::memory_order_release);
    return;
  }
  try {
    node_.barrier();
  } catch (const Error&) {  // the other ranks are gone
    return;
  }
  if (!window_) {
    ::munmap(data_, bytes_);
  } else {
    MPI_Win_unlock_all(window_->handle);
    MPI_Win_free(&window_->handle);
  }
}

std::uint32_t& SharedWindow::ended(int owner) const {
  return reinterpret_cast<std::uint32_t*>(data_)[owner];
}

std::shared_ptr<std::byte> SharedWindow::allocate(const std::string& label, std::size_t bytes) {
  const std::size_t at = used_;
  used_ += round_up(bytes, page_bytes);
  if (used_ > bytes_)
    throw Error(ExitCode::internal, label + ": " + std::to_string(bytes) + " bytes do not fit the node's memory of " +
                                        std::to_string(bytes_));
  if (window_) take(data_ + at, bytes);
  return {data_ + at, [](std::byte*) {}};  // it goes with this object
}

void SharedWindow::still_waiting(int owner, double seconds, const std::string& awaited) {
  // Of this wait, in this thread: lanes wait, too. A new one starts from 0 s.
  thread_local double end_seen_at_s = -1;
  const auto name = [&] { return "rank " + std::to_string(names_[static_cast<std::size_t>(owner)]); };
  if (std::atomic_ref(ended(owner)).load(std::memory_order_acquire) == 0)
    end_seen_at_s = -1;
  else if (end_seen_at_s < 0 || end_seen_at_s > seconds)
    end_seen_at_s = seconds;
  else if (seconds - end_seen_at_s > seconds_to_end_the_job)
    throw Error(ExitCode::rank_failed, name() + " has failed, and " + awaited + " will not come");
  const double timeout_s = timeout_s_.load(std::memory_order_relaxed);
  if (timeout_s > 0 && seconds > timeout_s) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g s", timeout_s);
    throw Error(ExitCode::rank_failed, name() + " has kept the other ranks of its node waiting for " + awaited +
                                           " for longer than parallel/timeout: " + text.data() +
                                           "; where it is only slow, give a longer one");
  }
}

}  // namespace distzo2
