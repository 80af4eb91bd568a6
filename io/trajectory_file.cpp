// SPDX-License-Identifier: BSD-3-Clause
#include "io/trajectory_file.hpp"

#include "core/error.hpp"
#include "core/signals_blocked.hpp"
#include "io/output_file.hpp"
#include "io/regular_file.hpp"
#include "io/trajectory_format.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace distzo2 {
namespace {

Error system_error(const std::filesystem::path& path, const char* what) {
  return Error(ExitCode::file, fmt::format("{}: {} failed: {}", path.string(), what, std::strerror(errno)));
}

}  // namespace

std::string read_trajectory_bytes(const std::filesystem::path& path) {
  expect_regular_file(path);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error(ExitCode::file, fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  if (size > most_trajectory_bytes)
    throw Error(ExitCode::file, fmt::format("{}: {} bytes is more than a trajectory can have", path.string(), size));
  std::ifstream in(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw Error(ExitCode::file, fmt::format("{}: cannot be read", path.string()));
  return bytes;
}

Trajectory read_trajectory(const std::filesystem::path& path) {
  return decode_trajectory(read_trajectory_bytes(path), path.string());
}

TrajectoryWriter::TrajectoryWriter(const std::filesystem::path& path, const TrajectoryHeader& header, double sync_s)
    : path_(path), header_(header) {
  // Written beside and renamed: a trajectory that exists has a whole header.
  replace_text_file(path, encode_header(header));
  sync_folder(path.parent_path());
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) throw system_error(path_, "opening it");
  start_syncing(sync_s);
}

TrajectoryWriter::TrajectoryWriter(const std::filesystem::path& path, const Trajectory& found, double sync_s)
    : path_(path), header_(found.header), histories_(update_histories(found.steps)) {
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0) throw system_error(path_, "opening it");
  if (::ftruncate(file_, static_cast<off_t>(found.whole_bytes)) != 0)
    throw system_error(path_, "cutting the torn tail off");
  start_syncing(sync_s);
}

TrajectoryWriter::~TrajectoryWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (syncer_.joinable()) syncer_.join();
  ::close(file_);
}

void TrajectoryWriter::start_syncing(double sync_s) {
  sync_each_ = sync_s <= 0;
  if (sync_each_) return;
  const SignalsBlocked blocked;
  syncer_ = std::thread([this, period = std::chrono::duration<double>(sync_s)] {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      wake_.wait_for(lock, period, [this] { return stop_; });
      if (!std::exchange(dirty_, false)) continue;
      lock.unlock();
      sync_file();
      lock.lock();
    }
  });
}

void TrajectoryWriter::check_in_place() const {
  struct stat written {
  }, found{};
  if (::fstat(file_, &written) != 0) throw system_error(path_, "looking at it");
  const bool there = ::stat(path_.c_str(), &found) == 0;
  if (there && found.st_dev == written.st_dev && found.st_ino == written.st_ino) return;
  const std::filesystem::path folder = path_.parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw Error(ExitCode::file, fmt::format("{}: the run's folder is no longer there: it was moved or removed while "
                                            "the run wrote into it",
                                            folder.string()));
  throw Error(ExitCode::file, fmt::format("{}: what stands there is no longer the trajectory that this run writes: it "
                                          "was removed, moved or replaced meanwhile",
                                          path_.string()));
}

void TrajectoryWriter::fail_if_failed() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void TrajectoryWriter::write(const std::string& bytes) {
  fail_if_failed();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw system_error(path_, "writing it");
    done += static_cast<std::size_t>(n);
  }
  if (sync_each_) return sync();
  const std::lock_guard lock(mutex_);
  dirty_ = true;
}

void TrajectoryWriter::append(const StepRecord& record) {
  write(encode_record(header_, record));
  const std::lock_guard lock(mutex_);
  histories_.push_back(update_history(histories_.back(), record));
}

std::uint64_t TrajectoryWriter::history(std::uint32_t records) const {
  const std::lock_guard lock(mutex_);
  return histories_.at(records);
}

void TrajectoryWriter::append(const DigestRecord& record) {
  write(encode_record(header_, record));
}

void TrajectoryWriter::sync() {
  sync_file();
  fail_if_failed();
}

void TrajectoryWriter::sync_file() {
  // One at a time: the system reports a failure to one caller only, and the other must not take its own for success.
  const std::lock_guard one(sync_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;  // never tried again: what the system dropped cannot be known, and a second try may succeed
  }
  if (::fdatasync(file_) == 0) return;
  const auto failure = std::make_exception_ptr(system_error(path_, "syncing it"));
  const std::lock_guard lock(mutex_);
  failure_ = failure;
}

}  // namespace distzo2
