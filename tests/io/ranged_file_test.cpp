// SPDX-License-Identifier: BSD-3-Clause
#include "io/ranged_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

#include "io/safetensors.hpp"
#include "tests/io/expect_error.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace distzo2 {
namespace {

std::vector<std::byte> bytes_of(const RangedFile& file, std::uint64_t offset, std::size_t count) {
  std::vector<std::byte> bytes(count);
  file.read(offset, bytes);
  return bytes;
}

/// Every second call is interrupted, and no call moves more than three bytes.
ssize_t reluctant(int fd, void* to, std::size_t bytes, off_t offset) {
  static bool interrupted = false;
  interrupted = !interrupted;
  if (!interrupted) return ::pread(fd, to, std::min<std::size_t>(bytes, 3), offset);
  errno = EINTR;
  return -1;
}

ssize_t broken(int, void*, std::size_t, off_t) {
  errno = EIO;
  return -1;
}

TEST(RangedFile, goes_on_after_interrupted_and_short_reads) {
  const TemporaryFolder folder;
  const RangedFile file(folder.write("x", "0123456789abcdef"), reluctant);
  const auto bytes = bytes_of(file, 4, 11);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "456789abcde");
}

TEST(RangedFile, says_what_could_not_be_read) {
  const TemporaryFolder folder;
  const auto path = folder.write("x", "0123456789");
  expect_contains(file_error([&] { bytes_of(RangedFile(path, broken), 2, 3); }),
                  path.string() + ": cannot be read at byte 2: Input/output error");
  expect_contains(file_error([&] { RangedFile{folder / "none"}; }), "none: cannot be opened: No such file");
  expect_contains(file_error([&] { RangedFile{folder.path()}; }), "not a regular file");
}

// A mapped file would end the process by a signal here.
TEST(RangedFile, that_is_cut_short_meanwhile_is_an_error) {
  const TemporaryFolder folder;
  std::vector<float> values(5000);
  std::iota(values.begin(), values.end(), 1.0F);
  const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const auto path = folder.write(
      "x.safetensors", raw_safetensors(R"({"w":{"dtype":"F32","shape":[5000],"data_offsets":[0,20000]}})", data));
  const SafetensorsFile file(path);
  std::vector<float> out(100);
  file.read("w", 4900, out);
  EXPECT_EQ(out.back(), 5000.0F);
  std::filesystem::resize_file(path, 8192);
  file.read("w", 0, out);  // what is left can be read
  const std::string message = file_error([&] { file.read("w", 4900, out); });
  expect_contains(message, path.string() + ": ends at byte");
  expect_contains(message, "cut short while it was read");
}

TEST(RangedFile, gives_each_thread_its_range_of_16_bit_tensors) {
  const TemporaryFolder folder;
  std::string data;
  for (std::uint32_t i = 0; i < 100000; ++i) data += raw_bytes<std::uint16_t>({static_cast<std::uint16_t>(i % 0x7F00)});
  const auto path = folder.write(
      "x.safetensors", raw_safetensors(R"({"w":{"dtype":"BF16","shape":[100000],"data_offsets":[0,200000]}})", data));
  const SafetensorsFile file(path);
  std::vector<float> all(100000), part(40000);
  file.read("w", 0, all);
  file.read("w", 50000, part);
  EXPECT_TRUE(std::ranges::equal(part, std::span(all).subspan(50000, 40000)));
  EXPECT_EQ(all[0x3F80], 1.0F);  // 0x3F80 is 1 in bf16
  EXPECT_EQ(all[0x4049], 3.140625F);
}

}  // namespace
}  // namespace distzo2
