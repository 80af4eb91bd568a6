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
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Makes what was written durable and closes the file. Without it the file is closed, its last errors unseen.
  void finish();

private:
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

/// Renames folder `from` to `to`, durably; what stood at `to` before is replaced and removed.
void replace_folder(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace distzo2
