// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace distzo2 {

/// A new file written front to back. Every failure (a full disk too) is Error(file) naming the file and the cause.
class OutputFile {
public:
  /// Creates the file, or empties it where it exists.
  explicit OutputFile(const std::filesystem::path& path);
  /// A new file of an unused name beside `target`, to be renamed there.
  static OutputFile beside(const std::filesystem::path& target);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Makes what was written durable and closes the file. Without it the file is closed, its last errors unseen.
  void finish();
  const std::filesystem::path& path() const { return path_; }

private:
  OutputFile(std::filesystem::path path, int fd);
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Writes a whole file durably.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Writes a whole file beside its place and renames it there, so that a whole one stands there at every moment. Where a
/// link stands there, what it names is replaced; where it is no file (a pipe), the text is written to it.
void replace_text_file(const std::filesystem::path& path, std::string_view text);

/// Makes a folder's entries (created and renamed files) durable.
void sync_folder(const std::filesystem::path& folder);

/// Creates an empty folder of an unused name beside `target`, to be renamed there: no two processes get the same, and
/// what is nobody's to remove is left alone.
std::filesystem::path make_folder_beside(const std::filesystem::path& target);

/// Whether a file or folder name is one of those made beside `target`.
bool is_made_beside(const std::filesystem::path& target, const std::string& name);

/// Renames folder `from` to `to`, durably. False where something stands at `to` already, but for an empty folder.
bool publish_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Renames folder `from` to `to`, durably; what stood at `to` before is replaced and removed.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace distzo2
