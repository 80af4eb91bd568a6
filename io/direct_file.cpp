// SPDX-License-Identifier: BSD-3-Clause
#include "io/direct_file.hpp"

#include "core/chunk_table.hpp"
#include "core/error.hpp"
#include "io/fail.hpp"
#include "io/units.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace distzo2 {
namespace {

struct stat status_of(int fd, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail(path, "cannot be examined", errno);
  return status;
}

/// Takes `bytes` off the front of `parts`.
std::span<iovec> advance(std::span<iovec> parts, std::size_t bytes) {
  while (!parts.empty() && bytes >= parts[0].iov_len) {
    bytes -= parts[0].iov_len;
    parts = parts.subspan(1);
  }
  if (!parts.empty()) {
    parts[0].iov_base = static_cast<std::byte*>(parts[0].iov_base) + bytes;
    parts[0].iov_len -= bytes;
  }
  return parts;
}

std::uint64_t bytes_in(std::span<const iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace

FileRoom file_room(const std::filesystem::path& path, std::uint64_t bytes) {
  FileRoom room{.bytes = bytes};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) room.taken = static_cast<std::uint64_t>(status.st_blocks) * 512;
  for (std::filesystem::path at = std::filesystem::absolute(path);; at = at.parent_path()) {  // the nearest that exists
    struct statvfs space {};
    if (::statvfs(at.c_str(), &space) == 0) {
      room.free = std::uint64_t{space.f_bavail} * space.f_frsize;
      return room;
    }
    if (at == at.parent_path()) fail(path, "its file system cannot be examined", errno);
  }
}

void refuse_for_space(const std::filesystem::path& path, const FileRoom& room, const char* remedy) {
  const std::uint64_t needed = room.bytes - std::min(room.taken, room.bytes);
  throw Error(ExitCode::file, fmt::format("{}: {} more are needed ({} bytes) and {} are free on this file system; {}",
                                          path.string(), bytes_text(needed), needed, bytes_text(room.free), remedy));
}

DirectFile::DirectFile(const std::filesystem::path& path, bool try_direct) : path_(path), direct_(try_direct) {
  struct stat before {};
  created_ = ::stat(path.c_str(), &before) != 0;
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
  if (try_direct) fd_ = ::open(path.c_str(), flags | O_DIRECT, 0666);
  if (fd_ < 0 && (!try_direct || errno == EINVAL)) {
    direct_ = false;
    fd_ = ::open(path.c_str(), flags, 0666);
  }
  if (fd_ < 0) fail(path_, "cannot be opened for reading and writing", errno);
}

DirectFile::~DirectFile() {
  static_cast<void>(::close(fd_));  // what had to be durable was synced
}

bool DirectFile::lock() {
  return ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

std::uint64_t DirectFile::size() const {
  return static_cast<std::uint64_t>(status_of(fd_, path_).st_size);
}

void DirectFile::truncate(std::uint64_t bytes) {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail(path_, "its length cannot be set", errno);
}

void DirectFile::allocate(std::uint64_t bytes, const char* remedy) {
  const FileRoom room = file_room(path_, bytes);
  if (!room.enough()) refuse_for_space(path_, room, remedy);
  int result = 0;
  do result = ::fallocate(fd_, 0, 0, static_cast<off_t>(bytes));
  while (result != 0 && errno == EINTR);
  if (result == 0) return;
  if (errno == ENOSPC) refuse_for_space(path_, room, remedy);
  // posix_fallocate would write the whole file here; these file systems find a full disk when they are written to.
  if (errno != EOPNOTSUPP && errno != ENOSYS) fail(path_, "its space cannot be taken", errno);
  if (size() < bytes) truncate(bytes);
}

void DirectFile::transfer(Way way, std::uint64_t offset, std::span<iovec> parts) {
  const char* const what = way == Way::read ? "cannot be read" : "cannot be written";
  while (!parts.empty()) {
    const bool was_direct = direct();  // another thread may clear it while this one's call is under way
    const ssize_t n = way == Way::read
                          ? ::preadv(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset))
                          : ::pwritev(fd_, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && was_direct) {
      // Some file systems accept the flag and refuse the transfer.
      const int flags = ::fcntl(fd_, F_GETFL);
      if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) fail(path_, what, EINVAL);
      direct_ = false;
      continue;
    }
    if (n < 0) fail(path_, what, errno);
    auto moved = static_cast<std::size_t>(n);
    // A direct transfer cut short goes on at a whole page.
    if (was_direct && moved < bytes_in(parts)) moved -= moved % page_bytes;
    if (moved == 0)
      throw Error(ExitCode::file, fmt::format("{}: {} at byte {}: {} bytes are missing there, the file has {}",
                                              path_.string(), what, offset, bytes_in(parts), size()));
    offset += moved;
    parts = advance(parts, moved);
  }
}

void DirectFile::read(std::uint64_t offset, std::span<iovec> parts) {
  const std::uint64_t bytes = bytes_in(parts);
  transfer(Way::read, offset, parts);
  if (!direct())
    static_cast<void>(::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED));
}

void DirectFile::write(std::uint64_t offset, std::span<iovec> parts) {
  transfer(Way::write, offset, parts);
}

void DirectFile::sync() {
  if (::fdatasync(fd_) != 0) fail(path_, "cannot be made durable", errno);
  // Advice: where it is not taken only memory is lost.
  if (!direct()) static_cast<void>(::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED));
}

void DirectFile::check_present() const {
  if (status_of(fd_, path_).st_nlink == 0)
    throw Error(ExitCode::file, fmt::format("{}: was removed while in use", path_.string()));
}

void PageFree::operator()(std::byte* p) const {
  std::free(p);
}

PageBuffer make_page_buffer(std::size_t bytes) {
  // A request over huge pages has few segments: a disk takes it in fewer pieces.
  constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
  const bool huge = bytes >= huge_page_bytes;
  const std::size_t alignment = huge ? huge_page_bytes : page_bytes;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(alignment, size));
  if (p == nullptr) throw std::bad_alloc();
  if (huge) static_cast<void>(::madvise(p, size, MADV_HUGEPAGE));  // advice
  return PageBuffer(p);
}

bool page_aligned(const std::byte* p) {
  return page_aligned(reinterpret_cast<std::uintptr_t>(p));
}

std::size_t round_up_to_page(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace distzo2
