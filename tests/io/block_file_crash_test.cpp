// SPDX-License-Identifier: BSD-3-Clause
#include "io/block_file.hpp"
#include "tests/io/chunk_fixture.hpp"
#include "tests/support/file_bytes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// What may be on the disk after the power went: any page that was written since the last sync may have arrived or not.
std::string after_a_crash(const std::string& durable, const std::string& written, std::mt19937& random) {
  std::string disk = written;
  const bool pages = random() % 2 == 0;  // mixed within slots, or whole slots of 3 pages
  const std::size_t unit = pages ? 4096 : 3 * 4096;
  for (std::size_t at = 0; at < disk.size(); at += unit)
    if (random() % 2 == 0) disk.replace(at, unit, durable, at, unit);
  return disk;
}

/// One chunk at a time is written, `spares` slots being free; with one free slot left the next write must sync first.
void run_and_crash(int spares, unsigned seed) {
  const TemporaryFolder folder;
  std::mt19937 random(seed);
  const ChunkTable table = table_of({{8192, 5000, 8000}, {4097, 8192}});
  const int chunks = static_cast<int>(table.chunks.size());
  const BlockFileOptions options{.spare_slots = spares, .threads = 2, .direct = seed % 2 == 0};
  BlockFile store(folder / "store", table, Storage::bf16, options);
  const auto write = [&](int chunk, std::uint32_t version) {
    store.write(chunk, chunk + 1, image_of(table, chunk, chunk + 1, version, seed % 3).data, version);
  };
  const auto data = [&] { return file_bytes(folder / "store/chunks.bin"); };
  std::vector<std::uint32_t> now(static_cast<std::size_t>(chunks), 0);
  for (int c = 0; c < chunks; ++c) write(c, 0);
  store.sync();
  std::string durable = data();
  std::vector<std::uint32_t> synced = now;
  int free = spares;
  for (int step = 0; step < 15; ++step) {
    const bool asked = random() % 6 == 0;
    if (asked) store.sync();
    if (asked || free == 0) {
      durable = data();
      synced = now;
      free = spares;
    }
    const auto chunk = static_cast<std::size_t>(random()) % now.size();
    write(static_cast<int>(chunk), ++now[chunk]);
    --free;

    const fs::path copy = folder / "copy";
    fs::create_directories(copy);
    fs::copy_file(folder / "store/store.json", copy / "store.json", fs::copy_options::overwrite_existing);
    folder.write("copy/chunks.bin", after_a_crash(durable, data(), random));
    BlockFile found(copy, table, Storage::bf16, options);
    for (int c = 0; c < chunks; ++c) {
      const auto i = static_cast<std::size_t>(c);
      ASSERT_TRUE(found.holds(c)) << "seed " << seed << " step " << step << " chunk " << c;
      ASSERT_GE(found.version(c), synced[i]) << "seed " << seed << " step " << step << " chunk " << c;
      ASSERT_LE(found.version(c), now[i]);
      const Image image(table.chunks[i].bytes, 0);
      found.read(c, c + 1, image.data);
      ASSERT_EQ(difference(table, c, found.version(c), image.data), "") << "seed " << seed << " step " << step;
    }
  }
}

TEST(BlockFileCrash, leaves_of_each_chunk_a_whole_version_that_is_not_older_than_the_last_sync) {
  for (const int spares : {1, 2, 5})
    for (unsigned seed = 0; seed < 3; ++seed) run_and_crash(spares, seed);
}

TEST(BlockFileCrash, starts_anew_where_its_creation_did_not_end) {
  const TemporaryFolder folder;
  const ChunkTable table = table_of({{4096}});
  {
    BlockFile store(folder / "store", table, Storage::bf16, {});
    store.write(0, 1, image_of(table, 0, 1, 1).data, 1);
  }
  fs::remove(folder / "store/store.json");
  BlockFile store(folder / "store", table, Storage::bf16, {});
  EXPECT_FALSE(store.holds(0));
}

}  // namespace
}  // namespace distzo2
