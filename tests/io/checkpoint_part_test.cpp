// SPDX-License-Identifier: BSD-3-Clause
#include "io/checkpoint_part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "io/checkpoint_manifest.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// Chunks of less than a page, of whole pages and of more.
const ChunkTable five_chunks = table_of({{100, 8192}, {4096, 5000, 12}});

std::uint32_t fill(int chunk, std::byte* to) {
  const auto version = static_cast<std::uint32_t>(chunk % 2);
  for (std::size_t i = 0; i < five_chunks.chunks[static_cast<std::size_t>(chunk)].bytes; ++i)
    to[i] = pattern(chunk, version, i);
  return version;
}

/// In two parts.
CheckpointManifest write_checkpoint(const fs::path& folder) {
  CheckpointManifest m;
  m.step = 7;
  m.history = 0x0123456789abcdef;
  m.theta0_digest = 11;
  m.theta_digest = 12;
  m.storage = Storage::bf16;
  m.chunk_table = chunk_table_digest(five_chunks);
  for (const auto& [begin, end] : {std::pair{0, 3}, {3, 5}})
    m.parts.push_back(write_checkpoint_part(folder, five_chunks, begin, end, fill, 2));
  write_manifest(folder, m);
  return m;
}

/// Whether all of a checkpoint that can be read is as it was written. What is refused counts in `refused`.
bool is_right(const fs::path& folder, int& refused) {
  try {
    const CheckpointManifest m = read_manifest(folder, five_chunks, Storage::bf16);
    if (m.step != 7 || m.history != 0x0123456789abcdef || m.theta0_digest != 11 || m.theta_digest != 12) return false;
    for (const CheckpointPart& part : m.parts) try {
        const CheckpointPartReader reader(folder, part, five_chunks);
        for (int c = part.chunk_begin; c < part.chunk_end; ++c) try {
            std::vector<std::byte> bytes(five_chunks.slot_bytes);
            reader.read(c, bytes.data());
            if (!difference(five_chunks, c, reader.version(c), bytes.data()).empty()) return false;
          } catch (const Error&) {
            ++refused;
          }
      } catch (const Error&) {
        ++refused;
      }
  } catch (const Error&) {
    ++refused;
  }
  return true;
}

TEST(CheckpointPart, gives_back_what_was_written_at_pages_of_its_own) {
  const TemporaryFolder folder;
  const CheckpointManifest m = write_checkpoint(folder.path());
  int refused = 0;
  EXPECT_TRUE(is_right(folder.path(), refused));
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(fs::file_size(folder / "chunks-000000.bin"), 4096U + 8192 + 4096 + 4096);  // the last: the index
  EXPECT_EQ(fs::file_size(folder / "chunks-000003.bin"), 8192U + 4096 + 4096);
  EXPECT_EQ(m.parts[0].bytes, 20480U);
  const std::string bytes = file_bytes(folder / "chunks-000003.bin");
  EXPECT_EQ(static_cast<std::byte>(bytes[8192 + 11]), pattern(4, 0, 11));  // the second chunk's last byte
  EXPECT_EQ(bytes[8192 + 12], '\0');
}

TEST(CheckpointPart, refuses_what_has_changed_wherever_that_is) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path());
  for (const char* name : {"chunks-000000.bin", "chunks-000003.bin", "manifest.json"}) {
    const std::string bytes = file_bytes(folder / name);
    const std::size_t step = std::string(name) == "manifest.json" ? 5 : 512;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      for (const std::size_t i : {at, std::min(at + 37, bytes.size() - 1)}) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        folder.write(name, changed);
        int refused = 0;
        EXPECT_TRUE(is_right(folder.path(), refused)) << name << " byte " << i;
      }
      folder.write(name, bytes.substr(0, at));
      int refused = 0;
      EXPECT_TRUE(is_right(folder.path(), refused)) << name << " cut to " << at;
      EXPECT_EQ(refused > 0, at + 1 < bytes.size()) << name << " cut to " << at;  // the last is the text's end of line
    }
    fs::remove(folder / name);
    int refused = 0;
    EXPECT_TRUE(is_right(folder.path(), refused)) << name;
    EXPECT_EQ(refused, 1) << name;
    folder.write(name, bytes);
  }
}

TEST(CheckpointPart, says_what_is_wrong) {
  const TemporaryFolder folder;
  const CheckpointManifest m = write_checkpoint(folder.path());
  const auto read = [&] { read_manifest(folder.path(), five_chunks, Storage::bf16); };
  expect_contains(file_error([&] { read_manifest(folder.path(), five_chunks, Storage::fp32); }), "fp32 was expected");
  expect_contains(file_error([&] { read_manifest(folder.path(), table_of({{100}}), Storage::bf16); }), "another shape");
  std::string text = file_bytes(folder / "manifest.json");
  text.replace(text.find("\"step\": 7"), 9, "\"step\": 8");
  folder.write("manifest.json", text);
  expect_contains(file_error(read), "manifest.json: its checksum does not match");
  folder.write("manifest.json", "{}");
  expect_contains(file_error(read), "format");
  fs::remove(folder / "manifest.json");
  expect_contains(file_error(read), "manifest.json");
  fs::resize_file(folder / "chunks-000003.bin", 8192);
  expect_contains(file_error([&] { CheckpointPartReader(folder.path(), m.parts[1], five_chunks); }),
                  "has 8192 bytes; 16384 were expected");
}

TEST(CheckpointPart, refuses_a_manifest_whose_parts_do_not_hold_every_chunk_once) {
  const TemporaryFolder folder;
  const CheckpointManifest whole = write_checkpoint(folder.path());
  for (const std::vector<std::pair<int, int>>& ranges : std::vector<std::vector<std::pair<int, int>>>{
           {}, {{0, 3}}, {{3, 5}, {0, 3}}, {{0, 3}, {2, 5}}, {{0, 3}, {3, 6}}, {{0, 3}, {3, 3}, {3, 5}}, {{-1, 5}}}) {
    CheckpointManifest m = whole;
    m.parts.clear();
    for (const auto& [begin, end] : ranges) m.parts.push_back({begin, end, 4096, 0});
    write_manifest(folder.path(), m);
    expect_contains(file_error([&] { read_manifest(folder.path(), five_chunks, Storage::bf16); }), "parts");
  }
}

TEST(CheckpointPart, ends_with_the_first_error_of_a_chunk) {
  const TemporaryFolder folder;
  const auto failing = [](int chunk, std::byte* to) {
    if (chunk == 1) throw Error(ExitCode::file, "this chunk is lost");
    return fill(chunk, to);
  };
  expect_contains(file_error([&] { write_checkpoint_part(folder.path(), five_chunks, 0, 5, failing, 2); }), "is lost");
}

TEST(CheckpointPart, calls_for_each_chunk_once_on_whatever_threads) {
  std::vector<int> chunks(200);
  std::iota(chunks.begin(), chunks.end(), 0);
  for (const int threads : {0, 1, 3, 300}) {
    std::vector<std::atomic<int>> calls(chunks.size());
    for_each_chunk(chunks, five_chunks, threads, [&](int c, std::byte* memory) {
      EXPECT_TRUE(page_aligned(memory));
      std::memset(memory, c, five_chunks.slot_bytes);
      ++calls[static_cast<std::size_t>(c)];
    });
    for (const std::atomic<int>& n : calls) EXPECT_EQ(n, 1);
  }
  for_each_chunk({}, five_chunks, 3, [](int, std::byte*) { FAIL(); });
}

}  // namespace
}  // namespace distzo2
