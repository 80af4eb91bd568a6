// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace distzo2 {

/// A file of the user's that is only ever read, range by range: it is not mapped, so that what becomes of it meanwhile
/// is an error and no signal. Refusals are Error (file) naming the file. Threads may read at once.
class RangedFile {
public:
  /// The system call that moves bytes, `pread` but in tests.
  using Call = ssize_t (*)(int fd, void* to, std::size_t bytes, off_t offset);

  explicit RangedFile(const std::filesystem::path& path);
  RangedFile(const std::filesystem::path& path, Call call);
  ~RangedFile();
  RangedFile(const RangedFile&) = delete;
  RangedFile& operator=(const RangedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  /// Bytes [offset, offset + to.size()), in as many calls as it takes.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

private:
  std::filesystem::path path_;
  Call call_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace distzo2
