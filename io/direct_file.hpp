// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace distzo2 {

/// A file for large transfers that keeps out of the page cache: direct I/O where the file system allows it, else
/// buffered, the cache dropped behind. Every failure is Error (file) naming the file, what failed and why. Reads and
/// writes may be called from several threads.
class DirectFile {
public:
  /// Opens for reading and writing, creating an empty file where there is none.
  DirectFile(const std::filesystem::path& path, bool try_direct);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  bool created() const { return created_; }
  /// Whether transfers are direct: then offsets, sizes and addresses must be multiples of page_bytes.
  bool direct() const { return direct_.load(std::memory_order_relaxed); }

  /// False where another process has locked the file; it is unlocked when closed. True too where locks are unknown.
  bool lock();
  std::uint64_t size() const;
  void truncate(std::uint64_t bytes);
  /// Makes the file this long with its space taken, so that it is never found to be missing later; where the file
  /// system cannot, only the length is set. Says what is needed and free where the space is not there. `remedy` ends
  /// that message.
  void allocate(std::uint64_t bytes, const char* remedy);

  /// All of `parts`, one after another, from or to `offset`. The parts are used up. A file that ends early is an error.
  void read(std::uint64_t offset, std::span<iovec> parts);
  void write(std::uint64_t offset, std::span<iovec> parts);
  /// Makes everything written durable, and drops it from the page cache where transfers are buffered.
  void sync();
  /// Throws where the file has been removed under the open descriptor, which would go on working.
  void check_present() const;

private:
  enum class Way { read, write };
  void transfer(Way way, std::uint64_t offset, std::span<iovec> parts);

  std::filesystem::path path_;
  int fd_ = -1;
  bool created_ = false;
  std::atomic<bool> direct_{false};
};

/// What a file will take of its disk, what it has of that already, and what is free there, in bytes.
struct FileRoom {
  std::uint64_t bytes = 0, taken = 0, free = 0;
  bool enough() const { return bytes <= taken + free; }
};

/// The room for a file of so many bytes; neither it nor its folder need exist.
FileRoom file_room(const std::filesystem::path& path, std::uint64_t bytes);
/// Throws Error (file): there, so much more is needed than is free. `remedy` ends the message.
[[noreturn]] void refuse_for_space(const std::filesystem::path& path, const FileRoom& room, const char* remedy);

/// Memory at a multiple of page_bytes.
struct PageFree {
  void operator()(std::byte* p) const;
};
using PageBuffer = std::unique_ptr<std::byte[], PageFree>;
PageBuffer make_page_buffer(std::size_t bytes);

constexpr bool page_aligned(std::uint64_t value) {
  return value % 4096 == 0;
}
bool page_aligned(const std::byte* p);
std::size_t round_up_to_page(std::size_t bytes);

}  // namespace distzo2
